import {useLocation} from '@docusaurus/router';
import {useEffect, useRef, useState} from 'react';
import {isSamePage, readPath} from '../addresses';
import type {Scope, ScopeId} from '../compose/ScopeChoice';
import type {Filters} from '../service/protocol';
import {fetchContents, type Page, type ServiceSettings} from '../service/requests';
import {words} from './words';

/** The pages of the book that are known so far. */
export interface Book {
  /** The pages that were asked for so far: those that the reader opened, with their modules. */
  pages: Page[];
  /** The page that the reader is on; null if it is not in the index. */
  page: Page | null;
  /** True until the service has said if it knows the page that the reader is on. */
  loading: boolean;
  /** True if the service could not be asked. */
  failed: boolean;
}

/** Asks the service for the page that the reader is on, while the panel is open. */
export function useBook(settings: ServiceSettings, open: boolean): Book {
  const {pathname} = useLocation();
  const [pages, setPages] = useState<Page[]>([]);
  // Paths that the service has answered for, also those that it does not know.
  const [answered, setAnswered] = useState<readonly string[]>([]);
  const [failed, setFailed] = useState(false);
  const asked = useRef(new Set<string>());
  const path = readPath(pathname);
  const page = findPage(pages, pathname);
  const known = page !== null || answered.includes(path);
  useEffect(() => {
    if (!open || known || asked.current.has(path)) {
      return;
    }
    asked.current.add(path);
    setFailed(false);
    fetchPage(settings, pathname)
      .then(
        (found) => {
          setPages((before) => addPages(before, found));
          setAnswered((before) => [...before, path]);
        },
        () => setFailed(true),
      )
      // After a failure, it is asked again when the panel is opened again.
      .finally(() => asked.current.delete(path));
  }, [open, known, path, pathname, settings]);
  return {pages, page, loading: !known && !failed, failed};
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
  return pages.find((page) => page.url !== '' && isSamePage(page.url, pathname)) ?? null;
}

/** Returns the scopes that a reader of a page can choose from. */
export function listScopes(page: Page | null): Scope[] {
  const scopes: Scope[] = [{id: 'book', label: words.wholeBook()}];
  if (page?.module) {
    scopes.push({id: 'module', label: words.thisModule()});
  }
  if (page) {
    scopes.push({id: 'page', label: words.thisPage()});
  }
  return scopes;
}

/** Returns the filters of a scope, or undefined for the whole book. */
export function makeFilters(scope: ScopeId, page: Page | null): Filters | undefined {
  if (scope === 'page' && page) {
    return {doc_paths: [page.doc_path]};
  }
  if (scope === 'module' && page?.module) {
    return {modules: [page.module]};
  }
  return undefined;
}
