// @vitest-environment jsdom
import fc from 'fast-check';
import {act} from 'react';
import {afterEach, describe, expect, it, vi} from 'vitest';
import {all, clear, draw, show} from './rendering';
import {makeSource, makeTurn} from './turns';

afterEach(clear);

const answer = (text: string) => makeTurn({kind: 'generated', text});

describe('Markdown of an answer', () => {
  it('shows headings as bold paragraphs', async () => {
    await show(answer('# One\n\n###### Two\n\nText'));
    expect(all('h1, h2, h3, h4, h5, h6')).toEqual([]);
    expect(all('p strong').map((title) => title.textContent)).toEqual(['One', 'Two']);
  });

  it('puts tables into a box that the keyboard can scroll', async () => {
    await show(answer('| a | b |\n| - | -: |\n| 1 | 2 |'));
    const box = all('[role="region"]')[0]!;
    expect([box.tabIndex, box.getAttribute('aria-label')]).toEqual([0, 'Table']);
    expect(all('td').map((cell) => cell.textContent)).toEqual(['1', '2']);
  });

  it('gives code with its language to the block of the theme', async () => {
    await show(answer('```py title="a.py"\nprint(1)\n\nprint(2)\n```'));
    const [block] = all('pre.language-py');
    expect(block!.textContent).toBe('print(1)\n\nprint(2)');
  });

  it('shows the words of raw HTML, and words between angle brackets', async () => {
    const text = 'A <b onclick="x()">bold</b> `<i>` vector<int> and <T>.\n\n<div>\nblock\n</div>\n\na<br>b';
    const page = await show(answer(text));
    expect(page.textContent).toContain('A bold <i> vector<int> and <T>.');
    expect(page.textContent).toContain('block');
    expect(all('br')).toHaveLength(1);
  });

  it('shows the words for an image', async () => {
    const page = await show(answer('![A robot](https://evil.org/x.png)'));
    expect(all('img')).toEqual([]);
    expect(page.textContent).toContain('A robot');
  });

  it('adds the base URL of the book, and not that of the page\'s language', async () => {
    await show(makeTurn({text: '[a](/docs/a) [b](/book/b) [c](/book)'}));
    const hrefs = all('p a').map((link) => link.getAttribute('href'));
    expect(hrefs).toEqual(['/book/docs/a', '/book/b', '/book']);
  });

  it('opens other sites apart and pages of the site by a jump', async () => {
    const onJump = vi.fn();
    await show(answer('[a](https://other.org) [b](/book/c#d) [e](javascript:x) [f](./g)'), {onJump});
    const links = all('a');
    expect(links.map((link) => [link.textContent, link.getAttribute('href')])).toEqual([
      ['a', 'https://other.org/'],
      ['b', '/book/c#d'],
    ]);
    expect(links[0]!.getAttribute('rel')).toBe('noopener nofollow');
    await act(async () => links[1]!.click());
    expect(onJump).toHaveBeenCalledWith({url: '/book/c#d', text: ''}, true);
  });

  it('reads no references and footnotes, so that [1] stays a citation', async () => {
    const text = 'Yes [1].[^2]\n\n[1]: https://evil.org\n[^2]: note';
    await show(makeTurn({kind: 'generated', text, sources: [makeSource()]}));
    expect(all('p a').map((link) => link.getAttribute('href'))).toContain(
      '/book/docs/balance#falling',
    );
    expect(all('[href^="https://evil.org"][data-robotutor], [id^="user-content"]')).toEqual([]);
    expect(all('a[href^="https://evil.org"]').every(({textContent}) => textContent !== '1')).toBe(true);
  });

  it('draws formulas and leaves money alone', async () => {
    const page = await show(answer('$x^2$ for $5 and $7\n\n$$\ny\n$$'));
    expect(all('annotation').map((tex) => tex.textContent)).toEqual(['x^2', 'y']);
    expect(page.textContent).toContain('for $5 and $7');
  });

  it('shows a wrong formula as its source and obeys no commands that load or style', async () => {
    const text = '$\\frac{$ and $\\href{javascript:x}{y}$ and $\\includegraphics{https://e.org/x}$';
    const page = await show(answer(text));
    expect(page.textContent).toContain('\\frac');
    expect(all('a, img')).toEqual([]);
  });

  it('sets the direction of each paragraph by its words', async () => {
    await show(answer('مرحبا\n\n- a'));
    expect(all('p, li').every((element) => element.dir === 'auto')).toBe(true);
  });
});

const PIECES = [
  '<script>alert(1)</script>', '<iframe src=x>', '<img src=x onerror=alert(1)>', '<style>*{}</style>',
  '<svg onload=x>', '[a](javascript:alert(1))', '![b](https://e.org/x.png)', '<a href="javascript:x">',
  '<javascript:x>', '[c]: javascript:x', '```', '~~~html', '$', '$$', '\\(', '\\[', '|a|b|\n|-|-|\n',
  '[1]', '[1, 2]', '[^1]', '`', '**', '_', '- ', '> ', '# ', '\n', '\n\n', '  ', 'word', '\\', '\0',
  '\ud800', '&lt;', '&#0;', '\\href{javascript:x}{y}', '\\url{x}', 'www.x.org', '\u202e', '- [x] ', '🤖',
];

describe('any stream', () => {
  it('is shown without errors and without anything that acts', async () => {
    const turn = makeTurn({kind: 'generated', sources: [makeSource()]});
    await show({...turn, text: '$x$'});
    const deltas = fc.array(
      fc.oneof({weight: 5, arbitrary: fc.constantFrom(...PIECES)}, fc.string({unit: 'binary', maxLength: 4})),
      {minLength: 1, maxLength: 14},
    );
    await fc.assert(
      fc.asyncProperty(deltas, async (parts) => {
        let text = '';
        for (const part of parts) {
          text += part;
          await draw({...turn, text, status: 'streaming'});
        }
        await draw({...turn, text});
        expect(all('script, iframe, img, style, object, embed, form, input')).toEqual([]);
        for (const element of all('*')) {
          for (const {name, value} of Array.from(element.attributes)) {
            expect(name).not.toMatch(/^on|^srcdoc$|^formaction$/i);
            expect(['href', 'src', 'xlink:href'].includes(name) && !/^(?:https?:|mailto:|\/(?!\/))/.test(value)).toBe(false);
          }
        }
      }),
      {numRuns: 60},
    );
  }, 480_000);
});

describe('long texts', () => {
  it.each([
    ['100 kB without a space', 'a'.repeat(100_000)],
    ['100 kB of open brackets', '['.repeat(100_000)],
    ['100 kB of stars and ticks', '*`_'.repeat(33_000)],
    ['100 kB of open fences', '```\n'.repeat(25_000)],
    ['100 kB of quotes', '> '.repeat(50_000)],
    ['100 kB of paragraphs', 'Some words of a **book** [1].\n\n'.repeat(3300)],
    ['8 kB of nested lists', Array.from({length: 84}, (_, at) => `${' '.repeat(at * 2)}- a`).join('\n')],
    ['8 kB of brackets', '['.repeat(7900)],
    ['8 kB of stars', '*a '.repeat(2600)],
    ['8 kB of formulas', '$x_1$ '.repeat(1300)],
  ])('shows %s', async (_, text) => {
    await show(answer('$x$'));
    const page = await draw(answer(text));
    expect(page.textContent).not.toBe('');
  });

  it('draws only the last block again while a text of 100 kB arrives', async () => {
    const paragraph = 'Some words of a **book** about robots that walk [1].\n\n';
    const turn = {...answer(paragraph.repeat(1800)), model: 'writer'};
    await show({...turn, status: 'streaming'});
    const drawn = new Set<Node>();
    const observer = new MutationObserver((changes) => changes.forEach(({target}) => drawn.add(target)));
    const before = all('p');
    observer.observe(document.body, {childList: true, characterData: true, subtree: true});
    await draw({...turn, text: `${turn.text} word`, status: 'streaming'});
    await act(() => new Promise<void>((resolve) => requestAnimationFrame(() => resolve())));
    observer.disconnect();
    expect(all('p').slice(0, -50)).toEqual(before.slice(0, -50));
    const first = before[0]!;
    expect([...drawn].some((node) => first.contains(node))).toBe(false);
    expect(document.body.textContent).toMatch(/word\s*$/);
  });
});
