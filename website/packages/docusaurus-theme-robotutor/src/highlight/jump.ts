/** Goes to a cited place of the site and highlights the passage. */

import {decode, isSamePage, readAddress} from '../addresses';
import {findArticle, findFixedNavbar} from '../article';
import type {JumpTarget} from '../conversation/model';
import {findPassage} from './findPassage';
import {focusPlace} from './focusPlace';
import {watchPage} from './pageChange';
import {highlightRanges, keepHighlight, removeHighlight} from './paint';
import {savePending} from './pending';
import {nextFrame, openTabs, reveal} from './reveal';

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
// The distance between the navigation bar and the first line below it.
const MARGIN_PX = 24;
// The place of a passage, as a share of the window's height, and the lowest one that leaves its
// heading in view.
const USUAL_PLACE = 0.25;
const LOWEST_PLACE = 0.5;

let jumps = 0;

/** Returns the top of the first visible line of a place, in pixels below the top of the window. */
function findTop(place: Range | Element): number {
  const lines = place instanceof Range ? Array.from(place.getClientRects()) : [];
  const line = lines.find(({width, height}) => width > 1 && height > 1);
  return (line ?? place.getBoundingClientRect()).top;
}

/**
 * Scrolls to a place.
 *
 * A heading stands below the navigation bar. A passage stands at a quarter of the window's height, or
 * up to the middle if its heading is then in view.
 */
function scrollTo(place: Range | Element, heading: Element | null, isSmooth: boolean): void {
  const {innerHeight} = window;
  const highest = (findFixedNavbar()?.offsetHeight ?? 0) + MARGIN_PX;
  const top = findTop(place);
  let at = highest;
  if (place instanceof Range) {
    const belowHeading = heading ? highest + top - findTop(heading) : 0;
    const isNear = belowHeading >= highest && belowHeading <= innerHeight * LOWEST_PLACE;
    at = Math.max(highest, innerHeight * USUAL_PLACE, isNear ? belowHeading : 0);
  }
  const isStill = window.matchMedia?.('(prefers-reduced-motion: reduce)').matches;
  window.scrollTo({
    top: Math.max(0, window.scrollY + top - at),
    behavior: isSmooth && !isStill ? 'smooth' : 'instant',
  });
}

/** Labels of what opens on a click. They are not the text that a reader looks for. */
const LABELS = '[role="tab"], summary';

const isLabel = (node: Node): boolean =>
  (node instanceof Element ? node : node.parentElement)?.closest(LABELS) != null;

/** Returns the part of a range after labels at its start; the range itself if it has only labels. */
function skipLabels(range: Range): Range {
  if (!isLabel(range.startContainer)) return range;
  const walker = document.createTreeWalker(range.commonAncestorContainer, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (range.intersectsNode(node) && node.textContent?.trim() && !isLabel(node)) {
      const rest = range.cloneRange();
      rest.setStart(node, 0);
      return rest;
    }
  }
  return range;
}

/** Returns the nearest heading above a range in its article. */
function findHeading({startContainer}: Range): Element | null {
  const article = findArticle((found) => found.contains(startContainer));
  const headings = Array.from(article?.querySelectorAll('h1, h2, h3, h4, h5, h6') ?? []);
  const isBefore = (heading: Element): boolean =>
    (heading.compareDocumentPosition(startContainer) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0 ||
    heading.contains(startContainer);
  return headings.filter(isBefore).at(-1) ?? null;
}

/** Options of a jump. */
interface Options {
  /** True if the reader has seen the page before and can follow the movement. */
  isSmooth: boolean;
  /** True if the place takes the focus. */
  takesFocus: boolean;
}

/**
 * Begins a jump, which ends an earlier one.
 *
 * @returns A function that returns false after a later jump has begun.
 */
export function beginJump(): () => boolean {
  jumps += 1;
  const own = jumps;
  removeHighlight();
  return () => own === jumps;
}

/**
 * Shows a passage of the page that is open.
 *
 * @param isCurrent - The function of `beginJump`.
 * @returns `null` if a later jump has begun.
 */
export async function showPassage(
  target: JumpTarget,
  {isSmooth, takesFocus}: Options,
  isCurrent: () => boolean,
): Promise<JumpResult | null> {
  const anchor = decode(target.url.split('#')[1] ?? '');
  const heading = anchor ? document.getElementById(anchor) : null;
  const article = findArticle();
  // The same text may be in several tabs, and a tab may have no text before it is opened.
  const tab = article && target.tabs && (await openTabs(article, target.tabs, heading));
  if (!isCurrent()) return null;
  const find = (): Range[] | null => {
    for (const place of target.text ? [tab, findArticle()] : []) {
      const found = place && findPassage(place, target.text, anchor);
      if (found) return found;
    }
    return null;
  };
  const show = (place: Range | Element): void => {
    scrollTo(place, place instanceof Range ? findHeading(place) : null, isSmooth);
    if (takesFocus) focusPlace(place);
  };
  let ranges = find();
  for (const range of ranges ?? []) {
    await reveal(skipLabels(range).startContainer);
    if (!isCurrent()) return null;
  }
  // A tab may render its text again when it is opened.
  if (ranges?.some((range) => range.collapsed)) ranges = find();
  const first = ranges && (ranges.find((range) => !isLabel(range.startContainer)) ?? ranges[0]);
  if (ranges && first) {
    show(skipLabels(first));
    if (!highlightRanges(ranges)) return 'section';
    keepHighlight(document.body, ranges, find);
    return 'highlighted';
  }
  if (!heading) {
    const title = document.querySelector('main h1');
    if (takesFocus && title) focusPlace(title);
    return 'page';
  }
  await reveal(heading);
  if (!isCurrent()) return null;
  show(heading);
  return 'section';
}

/**
 * Goes to a place of the site and highlights the passage there. Other sites are not opened.
 *
 * The page is loaded by the site's router if it is a page of the site. Other pages of the same
 * host are loaded by the browser, and `PendingHighlight` highlights the passage there.
 *
 * @param takesFocus - True if the place takes the focus, for readers who use a keyboard.
 * @returns `null` if a later jump has begun.
 */
export async function jump(
  target: JumpTarget,
  router: Router,
  takesFocus = false,
): Promise<JumpResult | null> {
  const isCurrent = beginJump();
  const {origin, pathname, search, hash} = window.location;
  const address = readAddress(target.url, origin);
  if (!address?.internal) return 'page';
  const {href} = address;
  const url = new URL(href, origin);
  if (!`${url.pathname}/`.startsWith(router.baseUrl)) {
    savePending(target);
    window.location.assign(href);
    return 'page';
  }
  const isHere = isSamePage(href, pathname);
  const waitForPage = watchPage();
  if (href !== pathname + search + hash) {
    router.push(isHere ? pathname + search + url.hash : href);
  }
  const hasPage = isHere || (await waitForPage(PAGE_LIMIT_MS));
  // Docusaurus scrolls to the anchor itself when it has rendered a page.
  await nextFrame();
  await nextFrame();
  if (!isCurrent()) return null;
  return hasPage ? showPassage(target, {isSmooth: isHere, takesFocus}, isCurrent) : 'page';
}
