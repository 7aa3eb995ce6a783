/** Goes to a cited place of the site and highlights the passage. */

import {findArticle} from '../article';
import type {JumpTarget} from '../conversation/model';
import {findPassage} from './findPassage';
import {normalizePath, parseUrl, watchPage} from './pageChange';
import {highlightRanges, keepHighlight, removeHighlight} from './paint';
import {savePending} from './pending';
import {nextFrame, reveal} from './reveal';

/**
 * - `highlighted`: the passage is highlighted.
 * - `section`: the passage was not found or cannot be highlighted; its section is shown.
 * - `page`: the section was not found; only the page is shown, or nothing could be shown.
 */
export type JumpResult = 'highlighted' | 'section' | 'page';

/** The site's router. */
export interface Router {
  /** The path below which the site's pages are, with a slash at the end. */
  baseUrl: string;
  push: (path: string) => void;
}

const PAGE_LIMIT_MS = 10_000;
// The distance between the navigation bar and the passage.
const MARGIN_PX = 24;

let jumps = 0;

/** Returns the height of a navigation bar that stays at the top of the window. */
function measureNavbar(): number {
  const bar = document.querySelector<HTMLElement>('.navbar');
  if (!bar) return 0;
  const {position} = getComputedStyle(bar);
  return position === 'sticky' || position === 'fixed' ? bar.offsetHeight : 0;
}

/** Scrolls so that the first line of a place is below the navigation bar. */
function scrollTo(place: Range | Element, isSmooth: boolean): void {
  const lines = place instanceof Range ? Array.from(place.getClientRects()) : [];
  const line = lines.find(({width, height}) => width > 1 && height > 1);
  const {top} = line ?? place.getBoundingClientRect();
  const isStill = window.matchMedia?.('(prefers-reduced-motion: reduce)').matches;
  window.scrollTo({
    top: Math.max(0, window.scrollY + top - measureNavbar() - MARGIN_PX),
    behavior: isSmooth && !isStill ? 'smooth' : 'instant',
  });
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Shows a passage of the page that is open.
 *
 * @param isSmooth - True if the reader has seen the page before and can follow the movement.
 */
export async function showPassage(target: JumpTarget, isSmooth: boolean): Promise<JumpResult> {
  removeHighlight();
  const anchor = decode(target.url.split('#')[1] ?? '');
  const find = (): Range[] | null => {
    const article = findArticle();
    return article && target.text ? findPassage(article, target.text, anchor) : null;
  };
  let ranges = find();
  if (ranges) {
    for (const range of ranges) await reveal(range.startContainer);
    // A tab may render its text again when it is opened.
    if (ranges.some((range) => range.collapsed)) ranges = find();
  }
  const first = ranges?.[0];
  if (ranges && first) {
    scrollTo(first, isSmooth);
    if (!highlightRanges(ranges)) return 'section';
    keepHighlight(document.body, ranges, find);
    return 'highlighted';
  }
  const heading = anchor ? document.getElementById(anchor) : null;
  if (!heading) return 'page';
  await reveal(heading);
  scrollTo(heading, isSmooth);
  return 'section';
}

/**
 * Goes to a place of the site and highlights the passage there.
 *
 * The page is loaded by the site's router if it is a page of the site. Other pages are loaded by the
 * browser, and `PendingHighlight` highlights the passage there. A later call ends an earlier one.
 */
export async function jump(target: JumpTarget, router: Router): Promise<JumpResult> {
  jumps += 1;
  const own = jumps;
  removeHighlight();
  const url = parseUrl(target.url);
  if (!url || !/^https?:$/.test(url.protocol)) return 'page';
  const isOurs = url.origin === window.location.origin;
  if (!isOurs || !`${url.pathname}/`.startsWith(router.baseUrl)) {
    if (isOurs) savePending(target);
    window.location.assign(url.href);
    return 'page';
  }
  const path = url.pathname + url.search + url.hash;
  const isHere = normalizePath(url.pathname) === normalizePath(window.location.pathname);
  const waitForPage = watchPage();
  const {pathname, search, hash} = window.location;
  if (path !== pathname + search + hash) router.push(isHere ? pathname + search + url.hash : path);
  if (!isHere && !(await waitForPage(PAGE_LIMIT_MS))) return 'page';
  // Docusaurus scrolls to the anchor itself when it has rendered a page.
  await nextFrame();
  await nextFrame();
  return own === jumps ? showPassage(target, isHere) : 'page';
}
