// @vitest-environment jsdom
import {afterEach, beforeEach, describe, expect, it, vi} from 'vitest';

import {jump} from '../../src/highlight/jump';
import {removeHighlight} from '../../src/highlight/paint';
import {saveForNewTab, takePending} from '../../src/highlight/pending';
import {openPage, showArticle} from '../selection/page';

const registry = new Map<string, Set<Range>>();

class FakeHighlight extends Set<Range> {
  constructor(...ranges: Range[]) {
    super(ranges);
  }
}

const shown = (): string[] => Array.from(registry.get('robotutor') ?? [], String);

/** Returns a router that shows a page shortly after it has changed the address. */
function makeRouter(show: () => void = () => {}): {baseUrl: string; push: (path: string) => void} {
  return {
    baseUrl: '/book/',
    push: (path) => {
      history.pushState(null, '', path);
      setTimeout(show, 20);
    },
  };
}

beforeEach(() => {
  vi.stubGlobal('CSS', {highlights: registry});
  vi.stubGlobal('Highlight', FakeHighlight);
  // The test's browser has no layout.
  vi.stubGlobal('scrollTo', vi.fn());
  Range.prototype.getClientRects = () => [] as unknown as DOMRectList;
  Range.prototype.getBoundingClientRect = () => new DOMRect(0, 500, 100, 20);
  history.replaceState(null, '', '/book/walking');
  document.title = 'Walking';
});

afterEach(() => {
  removeHighlight();
  vi.unstubAllGlobals();
});

describe('a jump', () => {
  it('highlights the passage on the same page until Escape', async () => {
    openPage('repeated-headings');
    const target = {url: '/book/walking#running', text: 'Push off with the toes.'};
    expect(await jump(target, makeRouter())).toBe('highlighted');
    expect(shown()).toEqual(['Push off with the toes.']);
    expect(window.location.hash).toBe('#running');
    document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}));
    expect(shown()).toEqual([]);
  });

  it('waits until the router has rendered another page', async () => {
    openPage('repeated-headings');
    const router = makeRouter(() => openPage('table'));
    const text = 'A shoulder with three degrees of freedom becomes three revolute joints';
    const target = {url: '/book/joints#joint-types-and-what-each-allows', text};
    expect(await jump(target, router)).toBe('highlighted');
    expect(shown()).toEqual([text]);
  });

  it('opens the tab and the details with the passage', async () => {
    const page = openPage('tabs');
    const tabs = Array.from(page.querySelectorAll<HTMLElement>('[role="tab"]'));
    const clicked: (string | null)[] = [];
    tabs.forEach((tab) => tab.addEventListener('click', () => clicked.push(tab.textContent)));
    const text = 'Rotate the trunk forward quickly when pushed forward';
    expect(await jump({url: '/book/walking', text}, makeRouter())).toBe('highlighted');
    expect(clicked).toEqual(['Hip']);

    const other = openPage('details');
    const answer = 'A stride, two steps, takes 1.0 s.';
    expect(await jump({url: '/book/walking', text: answer}, makeRouter())).toBe('highlighted');
    expect(other.querySelector('details')?.open).toBe(true);
  });

  it('opens the tab that a citation names, which may have no text before that', async () => {
    const make = (os: string): string => `
      <div class="tabs-container"><ul role="tablist">
        <li role="tab" aria-selected="true">macOS</li><li role="tab" aria-selected="false">Linux</li>
      </ul><div><div role="tabpanel">Run the ${os} installer.</div></div></div>`;
    const page = showArticle(
      `<div class="theme-doc-markdown">${make('old')}<h2 id="setup">Setup</h2>${make('new')}</div>`,
    );
    const [, second] = Array.from(page.querySelectorAll('.tabs-container'));
    const [mac, linux] = Array.from(second!.querySelectorAll<HTMLElement>('[role="tab"]'));
    linux!.addEventListener('click', () => {
      mac!.setAttribute('aria-selected', 'false');
      linux!.setAttribute('aria-selected', 'true');
      second!.querySelector('[role="tabpanel"]')!.textContent = 'Unpack the archive.';
    });
    const target = {url: '/book/walking#setup', text: 'Unpack the archive.', tabs: ['Linux']};
    expect(await jump(target, makeRouter())).toBe('highlighted');
    expect(shown()).toEqual(['Unpack the archive.']);
    expect(page.querySelectorAll('[aria-selected="true"]')[1]?.textContent).toBe('Linux');
  });

  it('prefers the text in the named tab to the same text in another one', async () => {
    showArticle(
      `<div class="theme-doc-markdown"><ul role="tablist">
        <li role="tab" aria-controls="p0" aria-selected="true">macOS</li>
        <li role="tab" aria-controls="p1" aria-selected="false">Linux</li></ul>
        <div role="tabpanel" id="p0">Run the installer now.</div>
        <div role="tabpanel" id="p1" hidden>Run the installer now.</div></div>`,
    );
    const target = {url: '/book/walking', text: 'Run the installer now.', tabs: ['Linux', 'Gone']};
    expect(await jump(target, makeRouter())).toBe('highlighted');
    const [range] = Array.from(registry.get('robotutor') ?? []);
    expect(range?.startContainer.parentElement?.id).toBe('p1');
  });

  it('marks formulas as a whole until the highlight is removed', async () => {
    const page = openPage('formulas');
    const marked = (): number => page.querySelectorAll('.katex[data-robotutor-mark]').length;
    const text = 'where $(x,y)$ is the CoM and $g$ gravity.';
    expect(await jump({url: '/book/walking', text}, makeRouter())).toBe('highlighted');
    expect(marked()).toBe(2);
    removeHighlight();
    expect(marked()).toBe(0);
  });

  it('shows the section if the text is not found, and the page if the section is not', async () => {
    openPage('repeated-headings');
    const text = 'This sentence was removed from the book some time ago.';
    expect(await jump({url: '/book/walking#hints', text}, makeRouter())).toBe('section');
    expect(await jump({url: '/book/walking#gone', text}, makeRouter())).toBe('page');
    expect(shown()).toEqual([]);
  });

  it('shows the section if the browser cannot highlight', async () => {
    vi.stubGlobal('CSS', {});
    openPage('repeated-headings');
    const target = {url: '/book/walking#running', text: 'Push off with the toes.'};
    expect(await jump(target, makeRouter())).toBe('section');
  });

  it('replaces the highlight of an earlier jump', async () => {
    openPage('repeated-headings');
    await jump({url: '/book/walking#running', text: 'Push off with the toes.'}, makeRouter());
    await jump({url: '/book/walking', text: 'Repeat each experiment twice.'}, makeRouter());
    expect(shown()).toEqual(['Repeat each experiment twice.']);
  });

  it.each([
    'javascript:alert(1)',
    'data:text/html,x',
    'http://[',
    '//evil.example/book/walking',
    'https://evil.example/book/walking',
    `${window.location.origin}//evil.example`,
  ])('ignores %s', async (url) => {
    openPage('repeated-headings');
    const push = vi.fn();
    const router = {...makeRouter(), push};
    expect(await jump({url, text: 'Push off with the toes.'}, router)).toBe('page');
    expect(push).not.toHaveBeenCalled();
    expect(sessionStorage.length).toBe(0);
  });

  it('ends an earlier jump that is still opening a tab', async () => {
    openPage('tabs');
    const text = 'Rotate the trunk forward quickly when pushed forward';
    let later: Promise<unknown> | undefined;
    document.querySelectorAll('[role="tab"]').forEach((tab) =>
      tab.addEventListener('click', () => {
        openPage('repeated-headings');
        const target = {url: '/book/walking', text: 'Repeat each experiment twice.'};
        later ??= jump(target, makeRouter());
      }),
    );
    const earlier = jump({url: '/book/walking', text}, makeRouter());
    expect(await earlier).toBeNull();
    expect(await later).toBe('highlighted');
    expect(shown()).toEqual(['Repeat each experiment twice.']);
  });
});

describe('the focus after a jump', () => {
  const readFocus = (): string => document.activeElement?.textContent ?? '';

  it('is at the passage until it goes on', async () => {
    openPage('repeated-headings');
    const target = {url: '/book/walking#running', text: 'Push off with the toes.'};
    await jump(target, makeRouter(), true);
    expect(readFocus()).toContain('Push off with the toes.');
    const block = document.activeElement as HTMLElement;
    expect(block.tabIndex).toBe(-1);
    block.blur();
    expect(block.hasAttribute('tabindex')).toBe(false);
  });

  it('is at the heading if there is no passage', async () => {
    openPage('repeated-headings');
    await jump({url: '/book/walking#hints', text: ''}, makeRouter(), true);
    expect(document.activeElement?.id).toBe('hints');
  });

  it('stays after a jump by mouse', async () => {
    openPage('repeated-headings');
    const target = {url: '/book/walking#running', text: 'Push off with the toes.'};
    await jump(target, makeRouter());
    expect(document.activeElement).toBe(document.body);
  });
});

describe('a kept jump', () => {
  it('is returned once and only if it is valid', () => {
    const target = {url: '/book/walking/#y', text: 'z', tabs: ['Linux']};
    const kept = JSON.stringify(target);
    sessionStorage.setItem('robotutor.jump', kept);
    expect(takePending()).toEqual(target);
    expect(takePending()).toBeNull();
    sessionStorage.setItem('robotutor.jump', kept.replace('walking', 'other'));
    expect(takePending()).toBeNull();
    sessionStorage.setItem('robotutor.jump', '{"url": 1}');
    expect(takePending()).toBeNull();
    sessionStorage.setItem('robotutor.jump', '{');
    expect(takePending()).toBeNull();
  });

  it('finds its new tab by the address, once and for a short time', () => {
    vi.useFakeTimers();
    const target = {url: '/book/walking/#running', text: 'two', tabs: ['Linux']};
    saveForNewTab({url: '/book/other#b', text: 'one'});
    saveForNewTab(target);
    history.replaceState(null, '', '/book/walking');
    expect(takePending()).toBeNull();
    history.replaceState(null, '', '/book/walking#running');
    expect(takePending()).toEqual(target);
    expect(takePending()).toBeNull();
    vi.advanceTimersByTime(61_000);
    history.replaceState(null, '', '/book/other#b');
    expect(takePending()).toBeNull();
    expect(localStorage.length).toBe(0);
    vi.useRealTimers();
  });

  it('ignores what others stored', () => {
    for (const kept of ['{', '7', '[null, {"url": 1, "until": 1e99}]']) {
      localStorage.setItem('robotutor.jump', kept);
      expect(takePending()).toBeNull();
    }
    localStorage.clear();
  });
});
