import {useLocation} from '@docusaurus/router';
import {useEffect, useState} from 'react';
import type {Filters} from '../service/protocol';
import {fetchContents, type Page, type ServiceSettings} from '../service/requests';
import {words} from './words';

/** The part of the book in which a question is searched. */
export type Scope = 'book' | 'module' | 'page';

/** What the service knows about the book. */
export interface Book {
  /** The pages in the index; empty until the service has answered. */
  pages: Page[];
  /** The page that the reader is on; null if it is not in the index. */
  page: Page | null;
  /** True if the service could not be asked. */
  failed: boolean;
}

/** Asks the service for the table of contents when the panel is first open. */
export function useBook(settings: ServiceSettings, open: boolean): Book {
  const {pathname} = useLocation();
  const [pages, setPages] = useState<Page[] | null>(null);
  const [failed, setFailed] = useState(false);
  const {serviceUrl, apiKey} = settings;
  useEffect(() => {
    if (!open || pages) {
      return undefined;
    }
    let unmounted = false;
    fetchContents({serviceUrl, apiKey}).then(
      (found) => {
        if (!unmounted) {
          setPages(found);
          setFailed(false);
        }
      },
      () => {
        if (!unmounted) {
          setFailed(true); // it is asked again when the panel is opened again
        }
      },
    );
    return () => {
      unmounted = true;
    };
  }, [open, pages, serviceUrl, apiKey]);
  return {pages: pages ?? [], page: findPage(pages ?? [], pathname), failed};
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
