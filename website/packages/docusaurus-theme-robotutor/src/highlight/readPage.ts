/** The letters of a page, with the places where they are. */

import {ADMONITION_TITLE, NOT_TEXT, isDefaultTitle} from '../article';
import {placeOfLetter, toLetters} from './letters';
import {findTab} from './reveal';

// Markdown has the title of code in the fence, and the names of tabs at each tab.
const SKIPPED = `${NOT_TEXT},[class*="codeBlockTitle"],[role="tablist"]`;

/** A piece of the page whose letters begin at `start`. An element is highlighted as a whole. */
interface Piece {
  node: Text | Element;
  start: number;
  /** False for the name of a tab, which the page shows at another place than Markdown. */
  shown: boolean;
}

/** The letters of a page. */
export interface PageText {
  letters: string;
  pieces: Piece[];
}

/**
 * Reads the letters of a page in the order of the page.
 *
 * A formula counts as its TeX, an image as its description. Hidden tabs and closed details count,
 * because a jump opens them. The name of a tab comes before the tab's text.
 */
export function readPage(root: Element): PageText {
  // A page has thousands of elements, so they are not compared one by one.
  const skipped = new Set(Array.from(root.querySelectorAll(SKIPPED)));
  root.querySelectorAll(ADMONITION_TITLE).forEach((title) => {
    if (isDefaultTitle(title)) skipped.add(title);
  });
  const formulas = new Set(Array.from(root.querySelectorAll('.katex')));
  const pieces: Piece[] = [];
  const read: string[] = [];
  let start = 0;
  const add = (node: Text | Element, text: string, shown = true): void => {
    const letters = toLetters(text);
    if (!letters) return;
    pieces.push({node, start, shown});
    read.push(letters);
    start += letters.length;
  };
  const walk = (node: Node): void => {
    if (node instanceof Text) {
      add(node, node.data);
    } else if (node instanceof Element && !skipped.has(node)) {
      if (formulas.has(node)) {
        add(node, node.querySelector('annotation')?.textContent ?? '');
        return;
      }
      if (node instanceof HTMLImageElement) add(node, node.alt);
      if (node.getAttribute('role') === 'tabpanel') {
        const tab = findTab(node);
        if (tab) add(tab, tab.textContent ?? '', false);
      }
      node.childNodes.forEach(walk);
    }
  };
  root.childNodes.forEach(walk);
  return {letters: read.join(''), pieces};
}

/** Returns the index of the piece that contains a letter. */
function pieceAt({pieces}: PageText, letter: number): number {
  let low = 0;
  let high = pieces.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((pieces[middle]?.start ?? 0) <= letter) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Returns the number of letters before an element. */
export function lettersBefore({letters, pieces}: PageText, element: Element): number {
  const after = pieces.find(
    ({node, shown}) =>
      shown &&
      (element.contains(node) ||
        element.compareDocumentPosition(node) & Node.DOCUMENT_POSITION_FOLLOWING),
  );
  return after?.start ?? letters.length;
}

const LETTER = /[\p{L}\p{N}]/u;
const CLOSING = /^[^\s\p{L}\p{N}]{1,4}/u;

/** Says if the letters from `start` to `end` are whole words of the page. */
export function areWholeWords(page: PageText, start: number, end: number): boolean {
  const first = page.pieces[pieceAt(page, start)];
  const last = page.pieces[pieceAt(page, end - 1)];
  if (!first || !last) return false;
  const before =
    first.node instanceof Text
      ? first.node.data.slice(0, placeOfLetter(first.node.data, start - first.start)[0])
      : '';
  const after =
    last.node instanceof Text
      ? last.node.data.slice(placeOfLetter(last.node.data, end - 1 - last.start)[1])
      : '';
  return !LETTER.test(before.slice(-1)) && !LETTER.test(after.slice(0, 1));
}

/** Extends a range in code to the end of its last line if only marks follow, such as brackets. */
function extendToLineEnd(range: Range, node: Text): void {
  const line = node.parentElement?.closest('.token-line');
  if (!line) return;
  const rest = document.createRange();
  rest.setStart(range.endContainer, range.endOffset);
  rest.setEnd(line, line.childNodes.length);
  if (!LETTER.test(rest.toString())) range.setEnd(line, line.childNodes.length);
}

/**
 * Returns the range of the page with the letters from `start` to `end`, and the marks after them.
 *
 * The name of a tab is part of the range only if nothing else is.
 */
export function toRange(page: PageText, start: number, end: number): Range {
  const pieces = page.pieces.slice(pieceAt(page, start), pieceAt(page, end - 1) + 1);
  const inText = pieces.filter((piece) => piece.shown);
  const shown = inText.length > 0 ? inText : pieces;
  const first = shown[0];
  const last = shown.at(-1);
  const range = document.createRange();
  if (!first || !last) return range;
  if (first.node instanceof Text) {
    const letter = Math.max(0, start - first.start);
    range.setStart(first.node, placeOfLetter(first.node.data, letter)[0]);
  } else {
    range.setStartBefore(first.node);
  }
  if (last.node instanceof Text) {
    const {data} = last.node;
    const [, after] = placeOfLetter(data, Math.min(end - 1 - last.start, toLetters(data).length - 1));
    const marks = CLOSING.exec(data.slice(after))?.[0] ?? '';
    // A mark that a word follows, such as an opening bracket, belongs to that word.
    const stays = after + marks.length < data.length && LETTER.test(data.charAt(after + marks.length));
    range.setEnd(last.node, after + (stays ? 0 : marks.length));
    extendToLineEnd(range, last.node);
  } else {
    range.setEndAfter(last.node);
  }
  return range;
}
