// @vitest-environment jsdom
import {act} from 'react';
import {afterEach, describe, expect, it, vi} from 'vitest';
import type {Turn} from '../../src/conversation/model';
import {takePending} from '../../src/highlight/pending';
import type {Figure, Passage} from '../../src/service/protocol';
import {isEcho, readAround} from '../../src/answer/AboutSelection';
import {globalData} from '../docusaurus/globalData';
import {all, clear, press, show} from './rendering';
import {makeSource, makeTurn, readTurn, recordedNames} from './turns';

afterEach(clear);

describe('answers of the service', () => {
  it.each(recordedNames)('shows %s with its words and without errors', async (name) => {
    const turn = readTurn(name);
    const page = await show(turn);
    expect(page.querySelector('.katex-error')).toBeNull();
    if (isEcho(turn)) {
      expect(page.textContent).toContain('Search the whole book');
      return;
    }
    for (const passage of turn.passages) {
      expect(page.textContent).toContain(passage.citation.section);
    }
    expect(all('[data-robotutor="citation"]').length).toBeGreaterThanOrEqual(turn.passages.length);
    expect(all('h1, h2')).toEqual([]);
  });

  it('quotes a passage with its formula and marks the sentence that answers', async () => {
    await show(readTurn('formula'));
    expect(all('figure')).toHaveLength(2);
    expect(all('figure .katex').length).toBeGreaterThan(0);
    const marked = all('mark').map((mark) => mark.textContent).join(' ');
    expect(marked).toContain('The ZMP is the point on the ground where the moment');
  });

  it('does not list a source again that is quoted', async () => {
    const turn = readTurn('definition');
    await show(turn);
    const near = all('details li').map((item) => item.textContent);
    expect(near).toHaveLength(turn.sources.length - turn.passages.length);
  });

  it('numbers quotations from top to bottom, and names the place of neighbors once', async () => {
    const sources = [1, 2, 3].map((number) => makeSource({number}));
    const quote = (number: number, text: string) => ({
      citation: makeSource({number}),
      number,
      text,
      highlights: [],
      doc_path: 'balance.md',
      start_line: 1,
      end_line: 1,
    });
    const passages = [quote(3, 'First.'), quote(3, 'Second.'), quote(1, 'Third.')];
    await show(makeTurn({kind: 'extracted', text: '', sources, passages}));
    const figures = all('figure').map((figure) => figure.textContent);
    expect(figures).toEqual([
      expect.stringMatching(/^1.*First\.Second\.$/),
      expect.stringMatching(/^2.*Third\.$/),
    ]);
    expect(all('details [data-robotutor="citation"]').map((link) => link.textContent)).toEqual(['3']);
  });

  it('shows a greeting without sources and copying', async () => {
    const page = await show(readTurn('greeting'));
    expect(page.textContent).toBe(readTurn('greeting').text);
  });

  it('names the corrected words of a question and offers to search its own words', async () => {
    const onAsk = vi.fn();
    const turn = readTurn('typo');
    const page = await show(turn, {onAsk});
    expect(page.textContent).toContain('Showing results for “what is the zero moment point?”.');
    await press(`Search for “${turn.asked.question}” instead`);
    expect(onAsk).toHaveBeenCalledWith({...turn.asked, exactWords: true});
  });

  it('offers no other search after one without a correction', async () => {
    const page = await show({...readTurn('typo'), notices: []});
    expect(page.textContent).toContain('Searched for: what is the zero moment point?');
    expect(page.textContent).not.toContain('instead');
  });
});

describe('the length of an answer', () => {
  it('is that of the best passage; of the others the marked sentences are visible', async () => {
    const long = `${'Much more is said here. '.repeat(20)}The knee bends.`;
    const quote = (number: number) => ({
      citation: makeSource({number}),
      number,
      text: long,
      highlights: [[long.length - 15, long.length]] as [number, number][],
      doc_path: 'a.md',
      start_line: 1,
      end_line: 1,
    });
    await show(makeTurn({kind: 'extracted', passages: [quote(1), quote(2)]}));
    const read = (): string[] => all('blockquote').map((each) => each.textContent ?? '');
    expect(read()).toEqual([long, 'The knee bends.']);
    await press('Show');
    expect(read()).toEqual([long, long]);
    await press('Show less');
    expect(read()).toEqual([long, 'The knee bends.']);
  });

  it('of a marked label is that of the text after it', async () => {
    const text = `**Numbers.** The knee bends by ${'ten and '.repeat(40)}one degrees.`;
    const passage: Passage = {
      citation: makeSource(), number: 1, text, highlights: [[0, 12]],
      doc_path: 'a.md', start_line: 1, end_line: 1,
    };
    const other = {...passage, number: 2, citation: makeSource({number: 2})};
    await show(makeTurn({kind: 'extracted', passages: [passage, other]}));
    expect(all('blockquote')[1]?.textContent).toMatch(/^Numbers\. The knee bends .* …$/);
  });
});

describe('refusals', () => {
  it.each([
    [{doc_paths: ['a.md']}, 'This page does not cover this.'],
    [{modules: ['m']}, 'This module does not cover this.'],
  ])('of a question to %j name that part, and offer the whole book', async (filters, words) => {
    const onOffer = vi.fn();
    const refusal = {reason: 'not_covered', message: 'x', related: [], offers: []};
    const asked = {question: 'Why?', filters};
    const turn = makeTurn({status: 'refused', refusal, asked});
    const page = await show(turn, {onOffer});
    expect(page.textContent).toContain(words);
    await press('Search the whole book');
    expect(onOffer).toHaveBeenCalledWith(turn, 'drop_filters');
  });

  it('lead to the search of the site and to a person, if the site has them', async () => {
    const onSearch = vi.fn();
    const before = globalData['docusaurus-theme-robotutor'];
    const contactUrl = 'https://example.org/new?title={question}&body={page}';
    globalData['docusaurus-theme-robotutor'] = {...(before as object), contactUrl};
    const refusal = {reason: 'not_covered', message: 'x', related: [], offers: []};
    await show(makeTurn({status: 'refused', refusal}), {onSearch});
    await press('Search the site for this');
    expect(onSearch).toHaveBeenCalledWith('Why does a robot fall?');
    const [link] = all('a') as HTMLAnchorElement[];
    expect(new URL(link!.href).searchParams.get('title')).toBe('Why does a robot fall?');
    globalData['docusaurus-theme-robotutor'] = before;
  });

  it('offers what the service offers after a selection that does not answer', async () => {
    const onOffer = vi.fn();
    const turn = readTurn('selection_refused');
    const page = await show(turn, {onOffer});
    expect(page.textContent).toContain('Your selection does not answer this.');
    await press('Search the whole book');
    await press('Answer from the selection anyway');
    expect(onOffer.mock.calls).toEqual([
      [turn, 'whole_book'],
      [turn, 'answer_anyway'],
    ]);
  });

  it('says once that filters narrowed the search', async () => {
    const page = await show(readTurn('filters'));
    expect(page.textContent).toBe('The book does not cover this.Search the whole book');
  });

  it('shows the hints of a refusal next to its reason', async () => {
    const refusal = {reason: 'not_covered', message: 'x', related: [], offers: []};
    const notices = [{code: 'unknown_words', text: 'The book does not mention Mars.'}];
    await show(makeTurn({status: 'refused', refusal, notices}));
    expect(all('[data-reason] p').map((line) => line.textContent)).toEqual([
      'The book does not cover this.',
      'The book does not mention Mars.',
    ]);
    expect(all('[data-notice]')).toHaveLength(1);
  });

  it('replaces the text of a model that declined, and keeps an unknown reason readable', async () => {
    const related = [makeSource()];
    const refusal = {reason: 'model_declined', message: 'x', related, offers: []};
    let page = await show(makeTurn({status: 'refused', text: 'Well [1]', refusal}));
    expect(page.textContent).toContain('I could not find an answer in these passages.');
    expect(page.textContent).not.toContain('Well');
    expect(all('a').map((link) => link.getAttribute('href'))).toEqual(['/book/docs/balance#falling']);
    page = await show(makeTurn({refusal: {...refusal, reason: 'constructor', message: 'New.'}}));
    expect(page.textContent).toContain('New.');
  });
});

describe('problems', () => {
  it.each([
    ['stopped', 'Stopped.'],
    ['cut_off', 'The answer was cut off.'],
    ['failed', 'RoboTutor could not answer this time. Try again.'],
  ] as const)('keeps the text of a turn that is %s and lets the reader try again', async (status, words) => {
    const onRetry = vi.fn();
    const turn = makeTurn({status, text: 'A beginning'});
    const page = await show(turn, {onRetry});
    expect(page.textContent).toContain('A beginning');
    expect(page.textContent).toContain(words);
    await press('Try again');
    expect(onRetry).toHaveBeenCalledWith(turn);
  });

  it('counts down after too many questions', async () => {
    const problem = {code: 'RATE_LIMITED', words: 'tooMany', retryAfterS: 3} as const;
    const turn = makeTurn({status: 'failed', problem});
    const onRetry = vi.fn();
    const page = await show(turn, {onRetry}, {canAsk: false, waitS: 1});
    expect(page.textContent).toContain('Try again in 1 second.');
    expect(all('button').map((button) => button.ariaDisabled)).toEqual(['true']);
    await press('Try again');
    expect(onRetry).not.toHaveBeenCalled();
    await show(turn, {onRetry}, {canAsk: true, waitS: 0});
    expect(page.textContent).toContain('You can ask again now.');
    expect(all('button').map((button) => button.ariaDisabled)).toEqual([null]);
  });
});

describe('an answer about selected text that no model wrote', () => {
  const section = {title: 'Balance', section: 'Falling', url: '/book/docs/balance#falling', text: 'Around.'};
  const entry = {...section, section: 'ZMP', url: '/book/docs/glossary#zmp', text: 'A point $z_c$.'};

  const serve = (isDown = false): void => {
    vi.stubGlobal('fetch', async (url: string) => {
      if (isDown) {
        throw new TypeError('Failed to fetch');
      }
      return Response.json(url.includes('/v1/sections') ? section : {entries: [entry]});
    });
  };

  const ask = (text: string): Turn => {
    const passage = {
      citation: makeSource(), number: 1, text: 'The robot falls.', highlights: [],
      doc_path: '', start_line: 1, end_line: 1,
    };
    const selection = {text, words: 3, url: '/book/docs/balance#falling', section: 'Falling'};
    const asked = {question: 'What does this mean?', selection};
    return makeTurn({kind: 'extracted', passages: [passage as Passage], asked});
  };

  afterEach(() => vi.unstubAllGlobals());

  it('does not repeat the selection, but shows its section, its terms and a way on', async () => {
    serve();
    const onOffer = vi.fn();
    const turn = ask('The robot *falls*.');
    const page = await show(turn, {onOffer});
    await vi.waitFor(() => act(async () => expect(page.textContent).toContain('Around.')));
    expect(page.textContent).not.toContain('The robot falls.');
    expect(all('h3').map((title) => title.textContent)).toEqual([
      'The section around it', 'Terms and symbols',
    ]);
    expect(all('.katex').length).toBeGreaterThan(0);
    await press('Search the whole book');
    expect(onOffer).toHaveBeenCalledWith(turn, 'whole_book');
  });

  it('only names a section that is no more than the selection', async () => {
    serve();
    const page = await show(ask('Around.'));
    await vi.waitFor(() => act(async () => expect(page.textContent).toContain('Terms')));
    expect(all('h3')[0]?.textContent).toBe('The section around it');
    expect(page.textContent).not.toContain('Around.');
  });

  it('quotes the part that answers of a long selection', async () => {
    serve();
    const page = await show(ask(`The robot falls. ${'It stands up again. '.repeat(5)}`));
    expect(page.textContent).toContain('The robot falls.');
  });

  it('is not blank if the service is gone', async () => {
    serve(true);
    const page = await show(ask('The robot falls.'));
    expect(page.textContent).toContain('Search the whole book');
  });
});

describe('figures of a passage', () => {
  const figure = {kind: 'image', text: 'A foot', caption: 'Figure 1', address: '/img/foot.png'};

  const showFigures = async (figures: Figure[], text = 'It falls.'): Promise<string[][]> => {
    const passage: Passage = {
      citation: makeSource(), number: 1, text, highlights: [],
      doc_path: '', start_line: 1, end_line: 1, figures,
    };
    await show(makeTurn({kind: 'extracted', passages: [passage]}));
    await act(async () => {
      await import('@theme/Mermaid');
      await new Promise((resolve) => setTimeout(resolve, 20));
    });
    return (all('img') as HTMLImageElement[]).map(({src, alt}) => [src, alt]);
  };

  it('are shown if they are images of the site', async () => {
    const shown = await showFigures([figure, {...figure, address: 'https://evil.example/x.png'}]);
    expect(shown).toEqual([['http://localhost:3000/book/img/foot.png', 'A foot']]);
    expect(document.body.textContent).toContain('Figure 1');
  });

  it('are found in the built page if the build renamed them or wrote them into it', async () => {
    const inline = 'data:image/png;base64,AA==';
    const asked: string[] = [];
    vi.stubGlobal('fetch', async (address: string) => {
      asked.push(address);
      return new Response(`<main>
        <img alt="Another" src="/book/assets/images/big foot-0123abcd.png">
        <img alt="A foot" src="/book/assets/images/foot-0123abcd.png">
        <img alt="A foot on ice" src="/book/assets/images/foot-4567cdef.png">
        <img alt="A toe" src="https://evil.example/toe.png">
        <img alt="A sole" src="${inline}"></main>`);
    });
    const site = {...figure, address: '@site/docs/foot.png'};
    expect(
      await showFigures([
        site,
        {...site, text: 'A foot on ice'},
        {...site, text: 'A sole', address: '@site/docs/sole.png'},
        {...site, text: 'A toe', address: '@site/docs/toe.png'},
        {...site, text: 'A heel', address: '@site/docs/heel.png'},
      ]),
    ).toEqual([
      ['http://localhost:3000/book/assets/images/foot-0123abcd.png', 'A foot'],
      ['http://localhost:3000/book/assets/images/foot-4567cdef.png', 'A foot on ice'],
      [inline, 'A sole'],
    ]);
    expect(asked).toEqual(['http://localhost:3000/book/docs/balance']);
    vi.unstubAllGlobals();
  });

  it('do not repeat the texts of the passage', async () => {
    const shown = await showFigures([figure], 'A\nfoot\n\nFigure 1\n\nIt falls.');
    expect(shown).toEqual([['http://localhost:3000/book/img/foot.png', '']]);
    expect(document.body.textContent!.split('Figure 1')).toHaveLength(2);
  });

  it('are diagrams, each once', async () => {
    const diagram = {kind: 'diagram', text: 'graph TD; A-->B', caption: 'Falling', address: ''};
    await showFigures([diagram]);
    expect(all('[data-diagram]').map(({dataset}) => dataset.diagram)).toEqual([diagram.text]);
    expect(document.body.textContent).toContain('Falling');
    await showFigures([diagram], `It falls.\n\n\`\`\`mermaid\n${diagram.text}\n\`\`\``);
    expect(all('[data-diagram]').map(({dataset}) => dataset.diagram)).toEqual([diagram.text]);
  });
});

describe('the text around a selection', () => {
  it.each([
    ['One. Two. Three.', 'Two.', 'Three.'],
    ['One. Two.', 'Two.', 'One.'],
    ['One.', 'One.', ''],
    ['One.\n\n## Two\n\nThree.', 'One.', 'Three.'],
    ['One. Two.', 'Four.', 'One. Two.'],
  ])('in %j after %j is %j', (text, selected, around) => {
    expect(readAround(text, selected)).toBe(around);
  });
});

describe('closest passages', () => {
  it('says that the book may not answer before the passages', async () => {
    const page = await show(readTurn('closest'));
    expect(all('h3')[0]?.textContent).toBe('Closest passages');
    expect(page.textContent).toContain('The book does not seem to answer this directly.');
    expect(page.textContent).not.toContain('Where the book says this');
  });
});

describe('citations', () => {
  const turn = makeTurn({
    kind: 'generated',
    text: 'It falls [1][2]. Both [1, 2]. Unknown [7] and `[1]` and $a[1]$ and [1](/x).',
    sources: [makeSource(), makeSource({number: 2, text: 'Second.'}), makeSource({number: 3})],
  });

  it('links only sources that exist, and not in code, formulas and links', async () => {
    const page = await show(turn);
    const inText = all('p [data-robotutor="citation"]').map((link) => link.textContent);
    expect(inText).toEqual(['1', '2', '1', '2']);
    expect(page.textContent).toContain('Unknown [7]');
    expect(all('code').map((code) => code.textContent)).toEqual(['[1]']);
  });

  it('lists cited sources, and the others apart', async () => {
    await show(turn);
    const titles = all('h3, summary').map((title) => title.textContent);
    expect(titles).toEqual(['Where the book says this', 'Other places to look']);
    expect(all('details li')).toHaveLength(1);
  });

  it('jumps on a plain click and leaves other clicks to the browser', async () => {
    const onJump = vi.fn();
    await show(turn, {onJump});
    const link = all('p [data-robotutor="citation"]')[0]!;
    const click = (init: MouseEventInit): boolean =>
      link.dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true, ...init}));
    expect(click({ctrlKey: true})).toBe(true);
    expect(click({button: 1})).toBe(true);
    expect(onJump).not.toHaveBeenCalled();
    history.replaceState(null, '', '/book/docs/balance#falling');
    const text = 'A robot falls if its zero moment point leaves the foot.';
    expect(takePending()).toEqual({url: '/book/docs/balance#falling', text});
    expect(click({})).toBe(false);
    const target = {url: '/book/docs/balance#falling', text};
    expect(onJump).toHaveBeenLastCalledWith(target, true); // without a mouse
    expect(click({detail: 1})).toBe(false);
    expect(onJump).toHaveBeenLastCalledWith(target, false);
  });

  it('previews on the mouse and closes on Escape without telling the panel', async () => {
    await show(turn);
    const link = all('p [data-robotutor="citation"]')[0]!;
    const over = (pointerType: string): Promise<void> =>
      act(async () => {
        const event = new MouseEvent('pointerover', {bubbles: true});
        link.parentElement!.dispatchEvent(Object.assign(event, {pointerType}));
      });
    await over('touch');
    expect(all('[role="tooltip"]')).toHaveLength(0);
    await over('mouse');
    const [tip] = all('[role="tooltip"]');
    expect(tip!.textContent).toContain('A robot falls');
    expect(link.getAttribute('aria-describedby')).toBe(tip!.id);
    const onPanel = vi.fn();
    document.addEventListener('keydown', onPanel);
    await act(async () => {
      link.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}));
    });
    document.removeEventListener('keydown', onPanel);
    expect(all('[role="tooltip"]')).toHaveLength(0);
    expect(onPanel).not.toHaveBeenCalled();
  });
});
