import type {AllContent} from '@docusaurus/types';
import {describe, expect, it} from 'vitest';
import {listPages, listSubjects} from '../../src/manifest/pages';

const doc = (name: string, more: object = {}): object => ({
  source: `@site/docs/${name}.md`,
  permalink: `/docs/${name}`,
  title: name,
  frontMatter: {},
  unlisted: false,
  ...more,
});

const docs = (...versions: object[]): AllContent => ({
  'docusaurus-plugin-content-docs': {default: {loadedVersions: versions}},
});

describe('the pages of a site', () => {
  it('have the version and the place in the sidebar', () => {
    const arms = doc('arms', {sidebarPosition: 2, frontMatter: {sidebar_label: 'All arms'}});
    const current = {versionName: 'current', label: 'Next', isLast: false, docs: [arms]};
    expect(listPages(docs(current))).toEqual([
      {
        kind: 'docs',
        instance: 'default',
        source: 'docs/arms.md',
        permalink: '/docs/arms',
        title: 'arms',
        version: 'current',
        versionLabel: 'Next',
        isLatestVersion: false,
        sidebarLabel: 'All arms',
        sidebarPosition: 2,
      },
    ]);
  });

  it('come from docs, blog and single pages, in the order of their addresses', () => {
    const version = {versionName: '1', label: '1', isLast: true, docs: [doc('b'), doc('a')]};
    const post = {source: '@site/blog/2024-01-02-hello.md', permalink: '/blog/hello', title: 'Hi'};
    const content: AllContent = {
      ...docs(version),
      'docusaurus-plugin-content-blog': {news: {blogPosts: [{metadata: post}]}},
      'docusaurus-plugin-content-pages': {
        default: [
          {source: '@site/src/pages/index.tsx', permalink: '/'},
          {source: '@site/src/pages/about.mdx', permalink: '/about', title: 'About'},
        ],
      },
    };
    const pages = listPages(content);
    expect(pages.map(({kind, permalink}) => [kind, permalink])).toEqual([
      ['pages', '/about'],
      ['blog', '/blog/hello'],
      ['docs', '/docs/a'],
      ['docs', '/docs/b'],
    ]);
    expect(pages[1]?.instance).toBe('news');
  });

  it('can be missing, because a site needs neither docs nor a blog', () => {
    expect(listPages({})).toEqual([]);
    expect(listPages({'docusaurus-plugin-content-pages': {default: undefined}})).toEqual([]);
    expect(listPages({'docusaurus-plugin-content-blog': {default: null}})).toEqual([]);
  });

  it('keep what only some of them have', () => {
    const hidden = doc('x', {unlisted: true, lastUpdatedAt: 1700000000000});
    const version = {versionName: '1', label: '1', isLast: true, docs: [hidden]};
    const [page] = listPages(docs(version));
    expect(page).toMatchObject({unlisted: true, lastUpdatedAt: 1700000000000});
  });
});

describe('the subjects of a book', () => {
  const make = (names: [string, number?][]): string[] => {
    const pages = names.map(([name, sidebarPosition]) => doc(name, {sidebarPosition}));
    return listSubjects(listPages(docs({versionName: '1', label: '1', isLast: true, docs: pages})));
  };

  it('are first pages of folders after the index, spread over the book', () => {
    const chapters = Array.from({length: 8}, (_, at): [string, number?][] => [
      [`c${at}/index`, 1], [`c${at}/a-quiz`, 9], [`c${at}/begin`, 2],
    ]).flat();
    expect(make([['syllabus', 1], ...chapters])).toEqual([0, 2, 4, 6].map((at) => `c${at}/begin`));
  });

  it('are the pages themselves in a book without folders', () => {
    expect(make([['b'], ['a', 1]])).toEqual(['a']);
    expect(make([])).toEqual([]);
  });
});
