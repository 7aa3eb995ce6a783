/** The pages of a site that are written in Markdown, from the content that its plugins loaded. */

import type {AllContent} from '@docusaurus/types';

/** A page and what Docusaurus knows of it. */
export interface LoadedPage {
  /** The part of the site: docs, blog, or single pages. */
  kind: 'docs' | 'blog' | 'pages';
  /** The id of the plugin instance; `default` if the site has one instance only. */
  instance: string;
  /** The Markdown file below the folder of the site, with `/` between folders. */
  source: string;
  /** The path of the page with the base URL, as the site links to it. */
  permalink: string;
  title: string;
  /** The name of the docs version, such as `2.0` or `current`. Only docs have one. */
  version?: string;
  /** The words by which readers know the version. */
  versionLabel?: string;
  /** True for pages of the version that readers get if they choose none. */
  isLatestVersion?: boolean;
  /** The name of the page in its sidebar. */
  sidebarLabel?: string;
  /** The place of the page among its neighbors in a generated sidebar. */
  sidebarPosition?: number;
  /** True if no page of the site lists this page. */
  unlisted?: boolean;
  /** The last change in milliseconds since 1970, if the site shows it. */
  lastUpdatedAt?: number;
}

interface Metadata {
  source: string;
  permalink: string;
  title?: string;
  sidebarPosition?: number;
  frontMatter?: Record<string, unknown>;
  unlisted?: boolean;
  lastUpdatedAt?: number | null;
}

interface Version {
  versionName: string;
  label: string;
  isLast: boolean;
  docs: Metadata[];
}

type Instances = Record<string, unknown>;

const ROOT = '@site/';

/** Returns all Markdown pages of a site in the order of their addresses. */
export function listPages(content: AllContent): LoadedPage[] {
  const pages: LoadedPage[] = [];
  const add = (
    kind: LoadedPage['kind'],
    instance: string,
    metadata: Metadata,
    more: Partial<LoadedPage> = {},
  ): void => {
    // A page written in React has no text that the index could hold.
    if (!/\.mdx?$/.test(metadata.source) || !metadata.source.startsWith(ROOT)) {
      return;
    }
    pages.push({
      kind,
      instance,
      source: metadata.source.slice(ROOT.length),
      permalink: metadata.permalink,
      title: metadata.title ?? '',
      ...more,
      unlisted: metadata.unlisted || undefined,
      lastUpdatedAt: metadata.lastUpdatedAt ?? undefined,
    });
  };

  for (const [instance, loaded] of list(content['docusaurus-plugin-content-docs'])) {
    for (const version of (loaded as {loadedVersions?: Version[]}).loadedVersions ?? []) {
      for (const doc of version.docs) {
        const label = doc.frontMatter?.sidebar_label;
        add('docs', instance, doc, {
          version: version.versionName,
          versionLabel: version.label,
          isLatestVersion: version.isLast,
          sidebarLabel: typeof label === 'string' ? label : doc.title,
          sidebarPosition: doc.sidebarPosition,
        });
      }
    }
  }
  for (const [instance, loaded] of list(content['docusaurus-plugin-content-blog'])) {
    for (const {metadata} of (loaded as {blogPosts?: {metadata: Metadata}[]}).blogPosts ?? []) {
      add('blog', instance, metadata);
    }
  }
  for (const [instance, loaded] of list(content['docusaurus-plugin-content-pages'])) {
    for (const metadata of loaded as Metadata[]) {
      add('pages', instance, metadata);
    }
  }
  return pages.sort((one, other) => (one.permalink < other.permalink ? -1 : 1));
}

/** The most subjects that a page of the site carries. */
const MAX_SUBJECTS = 4;

/**
 * Returns titles of docs pages, each the first page of another folder after its index, the folders
 * evenly spread over the book. Pages at the top, such as a syllabus, are left out if there are folders.
 */
export function listSubjects(pages: LoadedPage[]): string[] {
  const first = new Map<string, LoadedPage>();
  const position = ({sidebarPosition = Infinity}: LoadedPage): number => sidebarPosition;
  for (const page of pages) {
    const folder = page.source.slice(0, page.source.lastIndexOf('/'));
    const isIndex = /\/(?:index|readme)\.mdx?$/i.test(page.source);
    const before = first.get(folder);
    if (page.kind === 'docs' && page.isLatestVersion && !page.unlisted && !isIndex) {
      if (!before || position(page) < position(before)) {
        first.set(folder, page);
      }
    }
  }
  const depth = (folder: string): number => folder.split('/').length;
  const top = Math.min(...[...first.keys()].map(depth));
  const deeper = [...first].filter(([folder]) => depth(folder) > top);
  const chosen = deeper.length > 0 ? deeper : [...first];
  const titles = [...new Set(chosen.map(([, {title}]) => title))];
  const step = Math.max(1, titles.length / MAX_SUBJECTS);
  return titles.filter((_, at) => Math.floor(at / step) !== Math.floor((at - 1) / step));
}

/** Returns the instances that loaded something. A disabled plugin has no content. */
const list = (instances: Instances | undefined): [string, object][] =>
  Object.entries(instances ?? {}).filter(
    (entry): entry is [string, object] => typeof entry[1] === 'object' && entry[1] !== null,
  );
