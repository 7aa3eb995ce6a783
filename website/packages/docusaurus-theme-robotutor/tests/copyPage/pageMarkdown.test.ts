// @vitest-environment jsdom
import {afterEach, describe, expect, it, vi} from 'vitest';
import {copyMarkdown, markdownAddress} from '../../src/copyPage/pageMarkdown';

const answer = (text: string, status = 200, type = 'text/markdown'): void => {
  const response = new Response(text, {status, headers: {'content-type': type}});
  vi.stubGlobal('fetch', vi.fn(async () => response));
};

const allowClipboard = (): string[] => {
  const written: string[] = [];
  vi.stubGlobal('navigator', {
    clipboard: {writeText: async (text: string) => void written.push(text)},
  });
  return written;
};

afterEach(() => vi.unstubAllGlobals());

describe('markdownAddress', () => {
  it.each([
    ['/book/docs/arms', '/book/docs/arms.md'],
    ['/book/docs/arms/', '/book/docs/arms.md'],
    ['/book/docs/arms.html', '/book/docs/arms.md'],
    ['/book/docs/1.1-foo', '/book/docs/1.1-foo.md'],
    ['/book/', '/book/index.md'],
    ['/book', '/book/index.md'],
  ])('gives the page %s the file %s', (pathname, address) => {
    expect(markdownAddress(pathname, '/book/')).toBe(address);
  });

  it('names the file of the root of a site without a base URL', () => {
    expect(markdownAddress('/', '/')).toBe('/index.md');
  });
});

describe('copyMarkdown', () => {
  it('copies the file with absolute links', async () => {
    const written = allowClipboard();
    answer('# Arms\n\n[legs](/docs/legs)\n');
    expect(await copyMarkdown('/docs/arms.md', '/docs/arms')).toBe('copied');
    const {origin} = window.location;
    expect(written).toEqual([
      `# Arms\n\n<${origin}/docs/arms>\n\n[legs](${origin}/docs/legs)\n`,
    ]);
  });

  it.each([
    ['status 404', 'Not here', 404, 'text/plain'],
    ['a page instead of the file', '<!doctype html>', 200, 'text/html; charset=utf-8'],
  ])('reports a missing file: %s', async (_, text, status, type) => {
    const written = allowClipboard();
    answer(text, status, type);
    expect(await copyMarkdown('/docs/arms.md', '/docs/arms')).toBe('missing');
    expect(written).toEqual([]);
  });

  it('reports a missing file if the site cannot be reached', async () => {
    allowClipboard();
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('offline')));
    expect(await copyMarkdown('/docs/arms.md', '/docs/arms')).toBe('missing');
  });

  it('reports that the browser refuses access to the clipboard', async () => {
    answer('# Arms\n');
    vi.stubGlobal('navigator', {clipboard: {writeText: () => Promise.reject(new Error('no'))}});
    expect(await copyMarkdown('/docs/arms.md', '/docs/arms')).toBe('refused');
  });

  it('reports the same if there is no clipboard, as on a page without https', async () => {
    answer('# Arms\n');
    vi.stubGlobal('navigator', {});
    expect(await copyMarkdown('/docs/arms.md', '/docs/arms')).toBe('refused');
  });

  it('hands the text over as a promise if the browser has clipboard items', async () => {
    answer('# Arms\n');
    const written: Blob[] = [];
    class Item {
      constructor(readonly data: Record<string, Promise<Blob>>) {}
    }
    vi.stubGlobal('ClipboardItem', Item);
    vi.stubGlobal('navigator', {
      clipboard: {
        write: async (items: Item[]) => {
          for (const item of items) written.push(await item.data['text/plain']!);
        },
      },
    });
    expect(await copyMarkdown('/docs/arms.md', '/docs/arms')).toBe('copied');
    expect(written[0]?.type).toBe('text/plain');
    expect(written[0]?.size).toBeGreaterThan('# Arms\n'.length);
  });
});
