import {useLocation} from '@docusaurus/router';
import {useEffect, useRef, useState} from 'react';
import type {Filters} from '../service/protocol';
import {fetchContents, type Page, type ServiceSettings} from '../service/requests';
import {words} from './words';

/** The part of the book in which a question is searched. */
export type Scope = 'book' | 'module' | 'page';

/** What the service knows about the book. */
export interface Book {
  /** The pages that were asked for so far: those that the reader opened, with their modules. */
  pages: Page[];
  /** The page that the reader is on; null if it is not in the index. */
  page: Page | null;
  /** True if the service could not be asked. */
  failed: boolean;
}

/** Asks the service for the page that the reader is on, while the panel is open. */
export function useBook(settings: ServiceSettings, open: boolean): Book {
  const {pathname} = useLocation();
  const [pages, setPages] = useState<Page[]>([]);
  const [failed, setFailed] = useState(false);
  // Pages that the service was asked for, also those that it does not know.
  const asked = useRef(new Set<string>());
  const {serviceUrl, apiKey} = settings;
  const page = findPage(pages, pathname);
  const known = page !== null;
  useEffect(() => {
    const path = normalizePath(pathname);
    if (!open || known || asked.current.has(path)) {
      return;
    }
    asked.current.add(path);
    fetchPage({serviceUrl, apiKey}, pathname).then(
      (found) => {
        setPages((before) => addPages(before, found));
        setFailed(false);
      },
      () => {
        asked.current.delete(path); // it is asked again when the panel is opened again
        setFailed(true);
      },
    );
  }, [open, known, pathname, serviceUrl, apiKey]);
  return {pages, page, failed};
}

/**
 * Returns the page at a path, with the other pages of its module; nothing if the book has no such
 * page. The other pages show which headings are not special to the page.
 */
export async function fetchPage(settings: ServiceSettings, path: string): Promise<Page[]> {
  const found = await fetchContents(settings, {url: path});
  const page = findPage(found, path);
  if (!page?.module || found.length > 1) {
    return found;
  }
  const {module} = page;
  return addPages(found, await fetchContents(settings, {module}).catch(() => []));
}

/** Adds pages that are not in a list yet. */
function addPages(pages: Page[], more: Page[]): Page[] {
  const known = new Set(pages.map(({url}) => url));
  return [...pages, ...more.filter(({url}) => !known.has(url))];
}

/** Returns the page with a path, with or without a slash at the end or the host of its URL. */
export function findPage(pages: Page[], pathname: string): Page | null {
  const wanted = normalizePath(pathname);
  return pages.find((page) => page.url !== '' && normalizePath(page.url) === wanted) ?? null;
}

/** Returns the scopes that a reader of a page can choose from. */
export function listScopes(page: Page | null): {id: Scope; label: string}[] {
  const scopes: {id: Scope; label: string}[] = [{id: 'book', label: words.wholeBook()}];
  if (page?.module) {
    scopes.push({id: 'module', label: words.thisModule()});
  }
  if (page) {
    scopes.push({id: 'page', label: words.thisPage()});
  }
  return scopes;
}

/** Returns the filters of a scope, or undefined for the whole book. */
export function makeFilters(scope: Scope, page: Page | null): Filters | undefined {
  if (scope === 'page' && page) {
    return {doc_paths: [page.doc_path]};
  }
  if (scope === 'module' && page?.module) {
    return {modules: [page.module]};
  }
  return undefined;
}

function normalizePath(url: string): string {
  const {pathname} = new URL(url, 'http://site');
  let path = pathname;
  try {
    path = decodeURIComponent(pathname);
  } catch {
    // A lone percent sign stays as it is.
  }
  return path.replace(/(?:\/index)?(?:\.html)?\/*$/, '') || '/';
}
