/** Reads what a reader selected on a page. */

import {findArticle, isOwnNode} from '../article';
import type {Selection} from '../conversation/model';
import {readSelected, visibleTexts} from './selectedPart';
import {writeMarkdown} from './writeBlocks';

/** Returns the part of a range that is inside an article. */
function clip(range: Range, article: Element): Range {
  const clipped = document.createRange();
  clipped.selectNodeContents(article);
  if (range.compareBoundaryPoints(Range.START_TO_START, clipped) > 0) {
    clipped.setStart(range.startContainer, range.startOffset);
  }
  if (range.compareBoundaryPoints(Range.END_TO_END, clipped) < 0) {
    clipped.setEnd(range.endContainer, range.endOffset);
  }
  return clipped;
}

/** Returns the ranges of a selection within the article of the page. */
function findRanges(selection: globalThis.Selection): {article: Element; ranges: Range[]} | null {
  const all = Array.from({length: selection.rangeCount}, (_, at) => selection.getRangeAt(at));
  const ranges = all.filter((range) => !range.collapsed && !isOwnNode(range.startContainer));
  const article = findArticle((found) => ranges.some((range) => range.intersectsNode(found)));
  if (!article) return null;
  const inside = ranges.filter((range) => range.intersectsNode(article));
  return {article, ranges: inside.map((range) => clip(range, article))};
}

/** Returns the first text node of which the range selects a visible character. */
function findFirstText(range: Range, article: Element): Text | null {
  for (const text of visibleTexts(article)) {
    if (readSelected(range, text).trim()) return text;
  }
  return null;
}

/** Returns the last heading at or above a node, or `null`. Headings that are not seen do not count. */
function findHeading(node: Node, article: Element): Element | null {
  const headings = Array.from(article.querySelectorAll('h1, h2[id], h3[id], h4[id], h5[id], h6[id]'));
  const above = headings.filter(
    (heading) =>
      heading.contains(node) ||
      heading.compareDocumentPosition(node) & Node.DOCUMENT_POSITION_FOLLOWING,
  );
  return above.filter((heading) => !heading.closest('[hidden], details:not([open])')).at(-1) ?? null;
}

const readHeading = (heading: Element): string =>
  Array.from(visibleTexts(heading), (text) => text.data)
    .join('')
    .replace(/\s+/g, ' ')
    .trim();

const CODE = /^ *(`{3,}).*\n[^]*?^ *\1 *$/gm;
const FORMULA = /\$\$[^$]+\$\$|\$[^$\n]+\$/g;

/** Returns the number of words of Markdown; 0 without text beside code and formulas. */
function countWords(markdown: string): number {
  if (!markdown.replace(CODE, '').replace(FORMULA, '').trim()) return 0;
  const text = markdown.replace(/^ *`{3,}.*$/gm, '').replace(FORMULA, ' x ');
  if (!('Segmenter' in Intl)) {
    return Math.max(1, text.split(/\s+/).filter(Boolean).length); // older versions of Firefox
  }
  // Languages such as Japanese have no spaces between words.
  const words = new Intl.Segmenter(undefined, {granularity: 'word'}).segment(text);
  return Math.max(1, Array.from(words).filter(({isWordLike}) => isWordLike).length);
}

/**
 * Says if a reader selected text of the article.
 *
 * This takes less time than reading the text.
 */
export function hasSelectedText(selection: globalThis.Selection | null): boolean {
  const found = selection && findRanges(selection);
  return found?.ranges.some((range) => findFirstText(range, found.article)) ?? false;
}

/**
 * Reads what a reader selected in the article, as Markdown.
 *
 * A formula is returned whole even if only a part of it is selected. A selection that reaches over
 * the article's borders is cut there. The length is not limited.
 *
 * @param selection - The browser's selection.
 * @param articlePath - The path of the page, to which the anchor of the section is added.
 * @returns `null` if no text of an article is selected.
 */
export function readSelection(
  selection: globalThis.Selection,
  articlePath: string,
): Selection | null {
  const found = findRanges(selection);
  if (!found) return null;
  const {article, ranges} = found;
  const text = ranges
    .map((range) => writeMarkdown(range, article))
    .filter(Boolean)
    .join('\n\n');
  const first = ranges.map((range) => findFirstText(range, article)).find(Boolean);
  if (!text.trim()) return null;
  const heading = first ? findHeading(first, article) : null;
  const isSection = heading !== null && !heading.matches('h1');
  return {
    text,
    words: countWords(text),
    url: isSection ? `${articlePath}#${heading.id}` : articlePath,
    section: isSection ? readHeading(heading) : '',
  };
}

/** Reads what the reader has selected now. See `readSelection`. */
export function currentSelection(articlePath: string): Selection | null {
  const selection = window.getSelection();
  return selection && readSelection(selection, articlePath);
}
