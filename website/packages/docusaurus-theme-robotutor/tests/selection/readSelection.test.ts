// @vitest-environment jsdom
import fc from 'fast-check';
import {describe, expect, it} from 'vitest';

import {openPage, placeOf, read, readMarkdownOf, select, selectAll, showArticle} from './page';

const article = (html: string): Element =>
  showArticle(`<div class="theme-doc-markdown markdown">${html}</div>`);

describe('formulas', () => {
  it('are returned as TeX, once', () => {
    const page = openPage('formulas');
    expect(readMarkdownOf(selectAll(page))).toMatch(
      /constant height \$z_c\$ and no change of angular momentum,\n\n\$\$\np_x=x-\\frac\{z_c\}\{g\}\\,\\ddot x,\\qquad p_y=y-\\frac\{z_c\}\{g\}\\,\\ddot y\n\$\$\n\nwhere \$\(x,y\)\$ is/,
    );
  });

  it('are returned whole if a part of their drawing is selected', () => {
    const page = openPage('formulas');
    const drawing = page.querySelector('.katex-display .katex-html .mord') as Element;
    expect(readMarkdownOf(selectAll(drawing))).toBe(
      '$$\np_x=x-\\frac{z_c}{g}\\,\\ddot x,\\qquad p_y=y-\\frac{z_c}{g}\\,\\ddot y\n$$',
    );
  });

  it('have no words on their own, like blocks of code, unlike a brace in a line', () => {
    const page = openPage('formulas');
    expect(read(selectAll(page.querySelector('.katex-display') as Element))?.words).toBe(0);
    const brace = article('<p><code>}</code></p>');
    expect(read(selectAll(brace))?.words).toBe(1);
    const code = article('<pre><code>x = 1\ny = 2</code></pre><p>Two words</p>');
    expect(read(selectAll(code.querySelector('pre') as Element))?.words).toBe(0);
    expect(read(selectAll(code))?.words).toBeGreaterThan(2);
  });

  it('are left out if the selection ends before them', () => {
    const page = openPage('formulas');
    const selection = select('With the CoM', 'constant height ');
    selection.extend(page.querySelector('mi')?.firstChild as Text, 0);
    expect(readMarkdownOf(selection)).toBe('With the CoM at constant height');
  });
});

describe('code', () => {
  const CODE = [
    'entry_points = {',
    "    'console_scripts': [",
    "        'lean_monitor = humanoid_basics.lean_monitor:main',",
    '    ],',
    '}',
  ];

  it('keeps its lines, language and title, without its buttons', () => {
    const page = openPage('code-with-title');
    const block = page.querySelector('.theme-code-block') as Element;
    expect(readMarkdownOf(selectAll(block))).toBe(
      `\`\`\`python title="setup.py (excerpt)"\n${CODE.join('\n')}\n\`\`\``,
    );
  });

  it('keeps any selected lines exactly', () => {
    const page = openPage('code-with-title');
    const lines = Array.from(page.querySelectorAll('.token-line'));
    fc.assert(
      fc.property(fc.nat({max: 4}), fc.nat({max: 4}), fc.boolean(), (one, other, isBackwards) => {
        const [first, last] = [Math.min(one, other), Math.max(one, other)];
        const from: [Node, number] = [lines[first] as Element, 0];
        const to: [Node, number] = [lines[last] as Element, lines[last]?.childNodes.length ?? 0];
        const [base, extent] = isBackwards ? [to, from] : [from, to];
        const selection = window.getSelection() as globalThis.Selection;
        selection.setBaseAndExtent(...base, ...extent);
        const expected = CODE.slice(first, last + 1).join('\n');
        expect(readMarkdownOf(selection)).toBe(`\`\`\`python\n${expected}\n\`\`\``);
      }),
      {numRuns: 30},
    );
  }, 60_000);

  it('keeps the indentation of a line whose first word is selected', () => {
    openPage('code-with-title');
    expect(readMarkdownOf(select("'console_scripts'", 'lean_monitor:main'))).toBe(
      "```python\n    'console_scripts': [\n        'lean_monitor = humanoid_basics.lean_monitor:main\n```",
    );
  });

  it('is a code span if it is a part of one line', () => {
    openPage('code-with-title');
    expect(readMarkdownOf(select("'console_scripts'", "'console_scripts'"))).toBe(
      "`'console_scripts'`",
    );
  });

  it('has a longer fence around a fence', () => {
    const page = article('<pre class="language-md"><code>```sh\nls\n```\n</code></pre>');
    expect(readMarkdownOf(selectAll(page))).toBe('````md\n```sh\nls\n```\n````');
  });

  it('keeps empty lines and leaves out numbers of lines', () => {
    const page = article(`<div class="language-py theme-code-block"><pre><code>
      <span class="token-line codeLine_x"><span class="codeLineNumber_x">1</span><span>a = 1</span><br></span>
      <span class="token-line codeLine_x"><span class="codeLineNumber_x">2</span><span>\n</span><br></span>
      <span class="token-line codeLine_x"><span class="codeLineNumber_x">3</span><span>b = 2</span><br></span>
      </code></pre></div>`.replace(/>\n\s+</g, '><'));
    expect(readMarkdownOf(selectAll(page))).toBe('```py\na = 1\n\nb = 2\n```');
  });

  it('in a text is between backticks', () => {
    openPage('code-with-title');
    expect(readMarkdownOf(select('The command', '(dependencies)'))).toBe(
      'The command writes `package.xml` (dependencies)',
    );
  });
});

describe('tables', () => {
  it('are rows below their head', () => {
    const page = openPage('table');
    const table = page.querySelector('table') as Element;
    expect(readMarkdownOf(selectAll(table))?.split('\n').slice(0, 3)).toEqual([
      '| Type | Motion | Limits required | Typical use |',
      '|---|---|---|---|',
      '| `revolute` | Turn about an axis | Yes | Hip, knee, elbow |',
    ]);
  });

  it('have no head if it is not selected', () => {
    openPage('table');
    expect(readMarkdownOf(select('Turn without end', 'Slide along an axis'))).toBe(
      '|  | Turn without end | Optional | Wheel, spinning lidar |\n| `prismatic` | Slide along an axis |  |  |',
    );
  });

  it('are plain text within one cell', () => {
    openPage('table');
    expect(readMarkdownOf(select('without end', 'without end'))).toBe('without end');
  });

  it('escape lines between columns', () => {
    const page = article('<table><tbody><tr><td><code>a|b</code></td><td>c</td></tr></tbody></table>');
    expect(readMarkdownOf(selectAll(page))).toBe('| `a\\|b` | c |');
  });
});

describe('lists', () => {
  it('keep their numbers', () => {
    openPage('ordered-list');
    const text = readMarkdownOf(select('A body in a world', 'Perception, mapping'));
    expect(text).toMatch(/^2\. \*\*A body in a world\.\*\* A robot .*\n3\. \*\*Autonomy\.\*\* Perception, mapping$/);
  });

  it('keep their levels and the first number', () => {
    const page = openPage('nested-list');
    expect(readMarkdownOf(selectAll(page))).toBe(
      'Check these before you power the robot:\n\n- The cables:\n  3. the battery\n  4. the `emergency stop`\n- The floor',
    );
  });

  it('have no marker for a few words of an item', () => {
    openPage('nested-list');
    expect(readMarkdownOf(select('battery', 'battery'))).toBe('battery');
  });

  it('have only the inner items if nothing else is selected', () => {
    openPage('nested-list');
    expect(readMarkdownOf(select('the battery', 'emergency stop'))).toBe(
      '3. the battery\n4. the `emergency stop`',
    );
  });
});

describe('other parts of a page', () => {
  it('give an admonition with its title', () => {
    const page = openPage('admonition');
    const box = page.querySelector('.theme-admonition') as Element;
    expect(readMarkdownOf(selectAll(box))).toMatch(
      /^Fixed joints vanish in the conversion\n\nWhen Gazebo .* Keep it with `<gazebo/,
    );
  });

  it('give only the tab that is open', () => {
    const page = openPage('tabs');
    const text = readMarkdownOf(selectAll(page));
    expect(text).toMatch(/^## Ankle, hip and step strategies\n\nAnkle\n\nMove \$p\$ within the sole/);
    expect(text).not.toMatch(/Hip|Step\b|Rotate the trunk/);
  });

  it('leave out what closed details contain', () => {
    const page = openPage('details');
    expect(readMarkdownOf(selectAll(page))).toMatch(/speed\?\n\nAnswer\n\n### Question 2/);
    page.querySelector('details')?.setAttribute('open', '');
    expect(readMarkdownOf(selectAll(page))).toMatch(/Answer\n\n\$T=60\/120=0\.50\$ s and/);
  });

  it('leave out what cannot be seen or selected', () => {
    const page = article(
      '<p>Seen <span style="display:none">none</span><span hidden>hidden</span>' +
        '<span style="user-select:none">fixed</span><span aria-hidden="true">aria</span>text' +
        '<svg><text>drawn</text></svg><button>Press</button></p>',
    );
    expect(readMarkdownOf(selectAll(page))).toBe('Seen text');
  });

  it('give links as text, images as their description and emphasis as marks', () => {
    const page = article(
      '<p>See <a href="/x">the <em>next</em> page</a>: <img src="x.png" alt="A robot"> <strong>now</strong>.</p>',
    );
    expect(readMarkdownOf(selectAll(page))).toBe('See the *next* page: A robot **now**.');
  });

  it('escape what would be taken for a mark', () => {
    const page = article('<p>$5 and $7, 2 * 3 and snake_case, &lt;b&gt;</p><p># no heading</p>');
    expect(readMarkdownOf(selectAll(page))).toBe(
      '\\$5 and \\$7, 2 \\* 3 and snake_case, \\<b>\n\n\\# no heading',
    );
  });
});

describe('the borders of a selection', () => {
  it('are those of the article', () => {
    openPage('repeated-headings');
    const selection = select('Book', 'Colophon');
    expect(readMarkdownOf(selection)).toMatch(/^# Walking\n\nRepeat[\s\S]*Keep the knees bent\.$/);
  });

  it('may be exchanged', () => {
    openPage('repeated-headings');
    const [start, from] = placeOf('Repeat');
    const [end, to] = placeOf('twice');
    const selection = window.getSelection() as globalThis.Selection;
    selection.setBaseAndExtent(end, to, start, from);
    expect(readMarkdownOf(selection)).toBe('Repeat each experiment');
  });

  it('do not take the block after a triple click', () => {
    const page = openPage('table');
    const selection = select('Joint types', 'Joint types and what each allows');
    selection.extend(page.querySelector('th') as Element, 0);
    expect(readMarkdownOf(selection)).toBe('## Joint types and what each allows');
  });

  it('do not take the code after a triple click', () => {
    const page = openPage('code-with-title');
    const selection = select('the line that', 'package.module:function');
    selection.extend(page.querySelector('.token-line span')?.firstChild as Text, 0);
    expect(readMarkdownOf(selection)).toMatch(/^the line .* `executable = package\.module:function`:$/);
    selection.extend(page.querySelector('[class*="codeBlockTitle"]') as Element, 0);
    expect(readMarkdownOf(selection)).toMatch(/package\.module:function`:$/);
  });

  it('outside of the article select nothing', () => {
    openPage('repeated-headings');
    expect(read(select('Next page', 'Colophon'))).toBeNull();
    expect(read(select('Module 1', 'Module 1'))).toBeNull();
  });

  it('around white space select nothing', () => {
    const page = article('<p>   </p><p>Text</p>');
    expect(read(selectAll(page.firstElementChild as Element))).toBeNull();
    window.getSelection()?.removeAllRanges();
    expect(read(window.getSelection() as globalThis.Selection)).toBeNull();
  });

  it('in the panel select nothing', () => {
    const page = article('<p>Text</p>');
    page.parentElement?.insertAdjacentHTML('beforeend', '<div data-robotutor="panel">Answer</div>');
    expect(read(select('Answer', 'Answer'))).toBeNull();
  });
});

describe('the section', () => {
  it('is the one of the nearest heading above', () => {
    openPage('repeated-headings');
    expect(read(select('Push off', 'toes'))).toEqual({
      text: 'Push off with the toes',
      words: 5,
      url: '/book/page#running',
      section: 'Running',
    });
  });

  it('has the anchor of a repeated heading', () => {
    const page = openPage('repeated-headings');
    expect(read(selectAll(page.lastElementChild as Element))?.url).toBe('/book/page#hints-1');
  });

  it('is missing below the title of the page', () => {
    openPage('repeated-headings');
    expect(read(select('each experiment', 'experiment'))).toMatchObject({
      url: '/book/page',
      section: '',
    });
  });
});
