// @vitest-environment jsdom
import {act} from 'react';
import {afterEach, beforeAll, beforeEach, describe, expect, it, vi} from 'vitest';
import Root from '../../src/theme/Root';
import {globalData} from '../docusaurus/globalData';
import {click, findButton, press, render, type} from '../render';

let wide = true;
const PAGE = '/docs/a';
const CONTENTS = {
  pages: [
    {
      title: 'A', url: PAGE, doc_path: 'a.md', module: 'm', chapter: '',
      sections: [{heading: 'Torque', url: `${PAGE}#torque`, level: 2}],
    },
  ],
};

const fetched = vi.fn(async (url: string): Promise<Response> => {
  if (url.startsWith('/v1/contents?')) {
    return Response.json(CONTENTS);
  }
  throw new TypeError('Failed to fetch');
});

// The panel is loaded when it is needed. The first load also compiles it.
beforeAll(async () => {
  await Promise.all([import('../../src/panel/Widget'), import('../../src/panel/TurnList')]);
}, 60_000);

beforeEach(() => {
  wide = true;
  sessionStorage.clear();
  history.replaceState(null, '', PAGE);
  fetched.mockClear();
  vi.stubGlobal('fetch', fetched);
  vi.stubGlobal('ResizeObserver', class {
    observe(): void {}
    disconnect(): void {}
  });
  vi.stubGlobal('matchMedia', (query: string) => ({
    matches: query.includes('min-width') && wide,
    addEventListener: () => {},
    removeEventListener: () => {},
  }));
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  delete globalData['docusaurus-plugin-content-docs'];
});

const renderSite = (): HTMLElement =>
  render(
    <Root>
      <main>
        <a href="/docs/b">Next</a>
      </main>
    </Root>,
  ).element;

const findPanel = (): HTMLElement | null => document.querySelector('[data-robotutor="panel"]');
const isOpen = (): boolean => findPanel()?.dataset.open === 'true';
const findField = (): HTMLTextAreaElement | null =>
  findPanel()?.querySelector<HTMLTextAreaElement>('textarea') ?? null;

async function waitFor(check: () => void): Promise<void> {
  await vi.waitFor(
    async () => {
      await act(async () => {}); // React draws what has arrived
      check();
    },
    {timeout: 30_000},
  );
}

async function open(site: HTMLElement): Promise<void> {
  await click(findButton(site, 'Ask RoboTutor'));
  await waitFor(() => expect(isOpen()).toBe(true));
  await waitFor(() => expect(document.activeElement).toBe(findField()));
}

const pressShortcut = (): boolean => press(document.body, {key: 'i', code: 'KeyI', ctrlKey: true});

describe('the button', () => {
  it('loads the panel when it is pressed, and asks the service nothing before', async () => {
    const site = renderSite();
    expect(findPanel()).toBeNull();
    expect(fetched).not.toHaveBeenCalled();
    await open(site);
    expect(findPanel()?.getAttribute('aria-label')).toBe('RoboTutor');
  });

  it('gets the focus back after Escape', async () => {
    const site = renderSite();
    await open(site);
    press(findField()!, {key: 'Escape'});
    expect(isOpen()).toBe(false);
    expect(document.activeElement).toBe(findButton(site, 'Ask RoboTutor'));
  });

  it('has the name that the site chose', () => {
    const before = globalData['docusaurus-theme-robotutor'];
    globalData['docusaurus-theme-robotutor'] = {serviceUrl: '', name: 'Ada', shortcut: false};
    const button = findButton(renderSite(), 'Ask Ada');
    globalData['docusaurus-theme-robotutor'] = before;
    expect(button.hasAttribute('aria-keyshortcuts')).toBe(false);
  });
});

describe('a question that may not be asked', () => {
  it('has buttons that look so while an answer arrives', async () => {
    fetched.mockImplementationOnce(async () => Response.json(CONTENTS));
    await open(renderSite());
    await waitFor(() => findButton(findPanel()!, 'What does this page say about “Torque”?'));
    fetched.mockImplementationOnce(() => new Promise(() => {}));
    type(findField()!, 'What is torque?');
    press(findField()!, {key: 'Enter'});
    await waitFor(() => expect(findButton(findPanel()!, 'Stop')).toBeTruthy());
    await click(findButton(findPanel()!, 'Stop'));
    await waitFor(() => findButton(findPanel()!, 'Try again'));
    expect(findButton(findPanel()!, 'Try again').ariaDisabled).toBeNull();
    fetched.mockImplementationOnce(() => new Promise(() => {}));
    type(findField()!, 'What is force?');
    press(findField()!, {key: 'Enter'});
    await waitFor(() => {
      expect(findButton(findPanel()!, 'Try again').ariaDisabled).toBe('true');
    });
    await click(findButton(findPanel()!, 'Stop'));
    await click(findButton(findPanel()!, 'New conversation'));
  });
});

describe('the shortcut', () => {
  it('opens and closes the panel', async () => {
    renderSite();
    expect(pressShortcut()).toBe(false);
    await waitFor(() => expect(isOpen()).toBe(true));
    expect(pressShortcut()).toBe(false);
    expect(isOpen()).toBe(false);
    pressShortcut();
    expect(isOpen()).toBe(true);
  });

  it('does not take the focus from the page when it closes the panel', async () => {
    const site = renderSite();
    await open(site);
    const link = site.querySelector('a')!;
    link.focus();
    pressShortcut();
    expect(isOpen()).toBe(false);
    expect(document.activeElement).toBe(link);
  });
});

describe('on a wide screen', () => {
  it('the page makes room and stays usable', async () => {
    const site = renderSite();
    await open(site);
    expect(findPanel()?.getAttribute('role')).toBe('complementary');
    expect(document.documentElement.dataset.robotutorLayout).toBe('side');
    expect(site.inert).toBeFalsy();
    expect(site.closest('[data-robotutor]')).toBeNull(); // the page is not part of the panel
    press(findField()!, {key: 'Escape'});
    expect(document.documentElement.dataset.robotutorLayout).toBeUndefined();
  });
});

describe('on a small screen', () => {
  it('the page behind the sheet is inert until it is closed', async () => {
    wide = false;
    const site = renderSite();
    await open(site);
    expect(findPanel()?.getAttribute('role')).toBe('dialog');
    expect(site.inert).toBe(true);
    expect(document.documentElement.style.overflow).toBe('hidden');
    await click(findButton(findPanel()!, 'Close'));
    expect(site.inert).toBe(false);
    expect(document.documentElement.style.overflow).toBe('');
    expect(document.activeElement).toBe(findButton(site, 'Ask RoboTutor'));
  });
});

describe('after a reload', () => {
  it('the panel is open again and leaves the focus where it is', async () => {
    const site = renderSite();
    await open(site);
    expect(sessionStorage.getItem('robotutor.open')).toBe('true');
    site.querySelector('a')!.focus();
    (document.activeElement as HTMLElement).blur();
    const again = renderSite();
    await waitFor(() => expect(again.querySelector('[hidden]')).not.toBeNull());
    expect(document.activeElement).toBe(document.body);
  });

  it('the panel works if the browser blocks storage', async () => {
    vi.spyOn(window, 'sessionStorage', 'get').mockImplementation(() => {
      throw new DOMException('blocked', 'SecurityError');
    });
    await open(renderSite());
  });
});

describe('an empty panel', () => {
  it('offers questions about the page, asked of that page only', async () => {
    await open(renderSite());
    const question = 'What does this page say about “Torque”?';
    await waitFor(() => findButton(findPanel()!, question));
    await click(findButton(findPanel()!, question));
    await waitFor(() => {
      const calls = fetched.mock.calls as unknown as [string, RequestInit][];
      const body = calls.find(([url]) => url.endsWith('/v1/answers'))?.[1].body;
      const filters = {doc_paths: ['a.md']};
      expect(JSON.parse(String(body))).toMatchObject({question, filters});
    });
  });
});

describe('without the service', () => {
  it('the panel says so once and offers the first page of the book', async () => {
    vi.stubGlobal('fetch', async () => {
      throw new TypeError('Failed to fetch');
    });
    globalData['docusaurus-plugin-content-docs'] = {
      versions: [{isLast: true, path: '/docs', mainDocId: 'x', docs: [{id: 'x', path: '/docs/x'}]}],
    };
    await open(renderSite());
    await waitFor(() => expect(findPanel()?.textContent).toContain('not available right now'));
    expect(findPanel()!.textContent!.match(/not available right now/g)).toHaveLength(1);
    expect(findPanel()!.querySelector('a')?.getAttribute('href')).toBe('/docs/x');
  });
});
