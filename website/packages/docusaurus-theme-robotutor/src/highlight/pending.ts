/** A jump that ends on a page that the browser loads anew. */

import {isSamePage} from '../addresses';
import type {JumpTarget} from '../conversation/model';
import {isRecord, readList, readName, readNumber, readObject} from '../service/fields';
import {JUMP_KEY, openStorage, readJson, writeItem} from '../storage';

/** Milliseconds that a new tab has to load its page. */
const NEW_TAB_MS = 60_000;
const MAX_NEW_TABS = 10;

interface NewTab extends JumpTarget {
  /** The time after which the jump is forgotten. */
  until: number;
}

/** Keeps a jump for the next page of this tab. Nothing is kept if the reader blocks storage. */
export function savePending(target: JumpTarget): void {
  writeItem(openStorage('session'), JUMP_KEY, JSON.stringify(target));
}

/**
 * Keeps a jump for a new tab or window.
 *
 * A browser gives a new tab nothing of the tab in which a link was pressed, so the tab finds its
 * jump by its address.
 */
export function saveForNewTab(target: JumpTarget): void {
  const kept = readNewTabs().slice(1 - MAX_NEW_TABS);
  writeNewTabs([...kept, {...target, until: Date.now() + NEW_TAB_MS}]);
}

/** Returns the jump that an earlier page kept for this one, once; `null` if there is none. */
export function takePending(): JumpTarget | null {
  const storage = openStorage('session');
  const target = readTarget(readJson(storage, JUMP_KEY));
  writeItem(storage, JUMP_KEY, null);
  if (target) {
    return isSamePage(target.url, window.location.pathname) ? target : null;
  }
  const tabs = readNewTabs();
  const found = tabs.find(isOpenPage);
  writeNewTabs(tabs.filter((tab) => tab !== found));
  if (!found) {
    return null;
  }
  const {until: _until, ...jump} = found;
  return jump;
}

function isOpenPage({url}: JumpTarget): boolean {
  const {pathname, hash} = window.location;
  return (url.split('#')[1] ?? '') === hash.slice(1) && isSamePage(url, pathname);
}

function readNewTabs(): NewTab[] {
  const now = Date.now();
  return readList(readJson(openStorage('local'), JUMP_KEY), (value) => {
    const target = readTarget(value);
    const until = isRecord(value) ? (readNumber(value.until) ?? 0) : 0;
    return target && until > now && until <= now + NEW_TAB_MS ? {...target, until} : null;
  });
}

const writeNewTabs = (tabs: NewTab[]): void =>
  writeItem(openStorage('local'), JUMP_KEY, tabs.length > 0 ? JSON.stringify(tabs) : null);

const readTarget = (value: unknown): JumpTarget | null =>
  readObject(value, ({url, text, tabs}) =>
    typeof url === 'string' && typeof text === 'string'
      ? {url, text, ...(tabs === undefined ? {} : {tabs: readList(tabs, readName)})}
      : null,
  );
