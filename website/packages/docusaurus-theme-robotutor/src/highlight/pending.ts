/** A jump that ends on a page that the browser loads anew. */

import type {JumpTarget} from '../conversation/model';
import {normalizePath, parseUrl} from './pageChange';

// In the session storage: the jump of this tab. In the local storage: those of tabs to be opened.
const KEY = 'robotutor.jump';

/** Milliseconds that a new tab has to load its page. */
const NEW_TAB_MS = 60_000;
const MAX_NEW_TABS = 10;

interface NewTab extends JumpTarget {
  /** The time after which the jump is forgotten. */
  until: number;
}

/** Keeps a jump for the next page of this tab. Nothing is kept if the reader blocks storage. */
export function savePending(target: JumpTarget): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(target));
  } catch {
    // The page is shown without a highlight.
  }
}

/**
 * Keeps a jump for a new tab or window.
 *
 * A browser gives a new tab nothing of the tab in which a link was pressed, so the tab finds its
 * jump by its address.
 */
export function saveForNewTab(target: JumpTarget): void {
  try {
    const kept = readNewTabs().slice(1 - MAX_NEW_TABS);
    writeNewTabs([...kept, {...target, until: Date.now() + NEW_TAB_MS}]);
  } catch {
    // The tab shows its page without a highlight.
  }
}

/** Returns the jump that an earlier page kept for this one, once; `null` if there is none. */
export function takePending(): JumpTarget | null {
  try {
    const kept = sessionStorage.getItem(KEY);
    sessionStorage.removeItem(KEY);
    return readTarget(JSON.parse(kept ?? 'null')) ?? takeNewTab();
  } catch {
    return null;
  }
}

function takeNewTab(): JumpTarget | null {
  const tabs = readNewTabs();
  const found = tabs.find(({url}) => isOpenPage(url));
  writeNewTabs(tabs.filter((tab) => tab !== found));
  return found ? {url: found.url, text: found.text} : null;
}

function isOpenPage(text: string): boolean {
  const {pathname, hash} = window.location;
  const url = parseUrl(text);
  return url?.hash === hash && normalizePath(url.pathname) === normalizePath(pathname);
}

function readNewTabs(): NewTab[] {
  const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]');
  const now = Date.now();
  return (Array.isArray(kept) ? kept : []).flatMap((value: unknown) => {
    const target = readTarget(value);
    const until = Number((value as {until?: unknown} | null)?.until);
    return target && until > now && until <= now + NEW_TAB_MS ? [{...target, until}] : [];
  });
}

function writeNewTabs(tabs: NewTab[]): void {
  if (tabs.length === 0) {
    localStorage.removeItem(KEY);
  } else {
    localStorage.setItem(KEY, JSON.stringify(tabs));
  }
}

function readTarget(value: unknown): JumpTarget | null {
  if (typeof value !== 'object' || value === null) return null;
  const {url, text} = value as Partial<Record<keyof JumpTarget, unknown>>;
  return typeof url === 'string' && typeof text === 'string' ? {url, text} : null;
}
