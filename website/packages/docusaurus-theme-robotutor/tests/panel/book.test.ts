import {afterEach, describe, expect, it, vi} from 'vitest';
import {suggestNeighbors, suggestQuestions} from '../../src/panel/suggestions';
import {fetchPage, findPage, listScopes, makeFilters} from '../../src/panel/useBook';
import type {Page} from '../../src/service/requests';

const makePage = (url: string, headings: [string, number][] = [], module = ''): Page => ({
  title: url, url, doc_path: `${url.slice(1)}.md`, module, chapter: '',
  sections: headings.map(([heading, level]) => ({heading, level, url})),
});

describe('findPage', () => {
  const pages = [makePage('/base/docs/a'), makePage('/base/docs/ä b/'), makePage('')];

  it.each([
    ['/base/docs/a', 0],
    ['/base/docs/a/', 0],
    ['/base/docs/a.html', 0],
    ['/base/docs/%C3%A4%20b', 1],
    ['/base/docs/ä b', 1],
  ])('finds %s', (path, index) => {
    expect(findPage(pages, path)).toBe(pages[index]);
  });

  it.each(['/base/', '/', '/docs/a', '/base/docs/%'])('finds no page for %s', (path) => {
    expect(findPage(pages, path)).toBeNull();
  });

  it('finds a page of a service that names the host', () => {
    const page = makePage('https://example.org/docs/a');
    expect(findPage([page], '/docs/a/')).toBe(page);
  });
});

describe('fetchPage', () => {
  const SETTINGS = {serviceUrl: ''};
  const a = makePage('/x/m/a/', [], 'm');
  const b = makePage('/x/m/b/', [], 'm');
  const top = makePage('/x/top/');

  afterEach(() => vi.unstubAllGlobals());

  /** A service that answers requests for contents; it ignores `url` if it is an old one. */
  const serve = (book: Page[], isOld = false): string[] => {
    const asked: string[] = [];
    vi.stubGlobal('fetch', async (address: string) => {
      asked.push(address);
      const query = new URL(address, 'http://site').searchParams;
      const url = isOld ? null : query.get('url');
      const module = query.get('module');
      const pages = book.filter((each) =>
        url !== null ? each.url === url : module === null || each.module === module,
      );
      return Response.json({pages});
    });
    return asked;
  };

  it('asks for the page and for its module', async () => {
    const asked = serve([top, b, a]);
    expect(await fetchPage(SETTINGS, '/x/m/a/')).toEqual([a, b]);
    expect(asked).toEqual(['/v1/contents?url=%2Fx%2Fm%2Fa%2F', '/v1/contents?module=m']);
  });

  it('asks once for a page without a module, and for a page that is not in the book', async () => {
    const asked = serve([top, b, a]);
    expect(await fetchPage(SETTINGS, '/x/top/')).toEqual([top]);
    expect(await fetchPage(SETTINGS, '/x/blog/')).toEqual([]);
    expect(asked).toHaveLength(2);
  });

  it('takes all pages of a service that cannot choose one', async () => {
    const asked = serve([top, b, a], true);
    expect(await fetchPage(SETTINGS, '/x/m/a/')).toEqual([top, b, a]);
    expect(asked).toHaveLength(1);
  });

  it('fails if the service is down', async () => {
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('Failed to fetch')));
    await expect(fetchPage(SETTINGS, '/x/top/')).rejects.toThrow('SERVICE_DOWN');
  });
});

describe('the scopes', () => {
  const ids = (page: Page | null): string[] => listScopes(page).map(({id}) => id);

  it('are those that the page has', () => {
    expect(ids(null)).toEqual(['book']);
    expect(ids(makePage('/a'))).toEqual(['book', 'page']);
    expect(ids(makePage('/a', [], 'm'))).toEqual(['book', 'module', 'page']);
  });

  it('become filters', () => {
    const page = makePage('/a', [], 'm');
    expect(makeFilters('book', page)).toBeUndefined();
    expect(makeFilters('module', page)).toEqual({modules: ['m']});
    expect(makeFilters('page', page)).toEqual({doc_paths: ['a.md']});
    expect(makeFilters('page', null)).toBeUndefined();
  });
});

describe('suggestQuestions', () => {
  const about = (heading: string): string => `What does this page say about “${heading}”?`;

  it('takes main sections before their subsections, at most four', () => {
    const page = makePage('/a', [['One', 2], ['One a', 3], ['Two', 2], ['Deep', 4], ['Three', 2]]);
    expect(suggestQuestions(page.sections, page, [page])).toEqual(['One', 'Two', 'Three', 'One a'].map(about));
    const many = makePage('/b', ['Aa', 'Bb', 'Cc', 'Dd', 'Ee'].map((name) => [name, 2]));
    expect(suggestQuestions(many.sections, many, [many])).toHaveLength(4);
  });

  it('leaves out headings that other pages have too', () => {
    const page = makePage('/a', [['Torque', 2], ['Key takeaways', 2]]);
    const other = makePage('/b', [['3. Key Takeaways', 2]]);
    expect(suggestQuestions(page.sections, page, [page, other])).toEqual([about('Torque')]);
  });

  it('asks a heading that is a question as it is, and drops section numbers', () => {
    const page = makePage('/a', [['1.2 Why two legs?', 2], ['2. Gaits', 2], ['3D models', 2]]);
    expect(suggestQuestions(page.sections, page, [page])).toEqual([
      'Why two legs?', about('Gaits'), about('3D models'),
    ]);
  });

  it('puts headings of one word last until other pages are known', () => {
    const page = makePage('/a', [['Summary', 2], ['The capture point', 2], ['Two feet', 3]]);
    expect(suggestQuestions(page.sections, null, [])).toEqual(
      ['The capture point', 'Two feet', 'Summary'].map(about),
    );
  });

  it('leaves out headings that make no readable question', () => {
    const long = 'A heading '.repeat(10);
    const page = makePage('/a', [['$x^2$', 2], ['42', 2], [long, 2], ['', 2]]);
    expect(suggestQuestions(page.sections, page, [page])).toEqual([]);
  });
});

describe('suggestNeighbors', () => {
  it('asks about the sections after and before the cited one, nearest first', () => {
    const page = makePage('/a', [['One', 2], ['Two', 2], ['Three', 2], ['Why four?', 2]]);
    page.sections.forEach((section) => (section.url = `/a#${section.heading}`));
    const about = (heading: string): string => `What does the book say about “${heading}”?`;
    expect(suggestNeighbors(page, 'Two')).toEqual([about('Three'), 'Why four?', about('One')]);
    expect(suggestNeighbors(page, 'gone')).toHaveLength(4);
    expect(suggestNeighbors(makePage('/b'), '')).toEqual([]);
  });

  it('asks about a heading above the cited one last', () => {
    const page = makePage('/a', [['Sensing', 2], ['Camera', 3], ['Lidar', 3], ['Walking', 2]]);
    page.sections.forEach((section) => (section.url = `/a#${section.heading}`));
    const asked = suggestNeighbors(page, 'Lidar').map((question) => /“(.+)”/.exec(question)?.[1]);
    expect(asked).toEqual(['Camera', 'Walking', 'Sensing']);
  });
});
