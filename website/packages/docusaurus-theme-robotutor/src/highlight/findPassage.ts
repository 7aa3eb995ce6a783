/** Finds a text of the book in the page that shows it. */

import {readMarkdown} from './readMarkdown';
import type {PageText} from './readPage';
import {areWholeWords, lettersBefore, readPage, toRange} from './readPage';

// Letters. A shorter text must be whole words, because it occurs inside of longer ones.
const SHORT = 24;
// Letters of the pieces by which a text is found that the page shows a little differently.
const SEED = 12;
const STEP = 4;
// The share of a text's letters that must be found.
const ENOUGH = 0.8;
// Letters. A page may show more between two pieces, such as the objectives below its title.
const MAX_GAP = 2000;
// Letters between two pieces that are highlighted with them.
const BRIDGE = 24;

type Span = [start: number, end: number];

/** The place where a run of equal letters is in the text, and where it is in the page. */
interface Run {
  inText: number;
  inPage: number;
  length: number;
}

/** Returns the spans of a page in which a heading's section begins and in which it is searched. */
function findSection(page: PageText, root: Element, anchor: string): number {
  const heading = anchor ? root.ownerDocument.getElementById(anchor) : null;
  return heading && root.contains(heading) ? lettersBefore(page, heading) : 0;
}

/** Returns the first occurrence from the section's start on, or the last one before it. */
function findExact(page: PageText, text: string, section: number): Span | null {
  let before: Span | null = null;
  for (let at = page.letters.indexOf(text); at >= 0; at = page.letters.indexOf(text, at + 1)) {
    if (text.length < SHORT && !areWholeWords(page, at, at + text.length)) continue;
    if (at >= section) return [at, at + text.length];
    before = [at, at + text.length];
  }
  return before;
}

/** Returns the longest run that contains the letters at two places. */
function growRun(page: string, text: string, inPage: number, inText: number): Run {
  let back = 0;
  while (inPage > back && inText > back && page[inPage - back - 1] === text[inText - back - 1]) {
    back += 1;
  }
  let length = SEED;
  while (inText + length < text.length && page[inPage + length] === text[inText + length]) {
    length += 1;
  }
  return {inText: inText - back, inPage: inPage - back, length: length + back};
}

/** Returns the runs of a text that follow each other in the page from `from` on. */
function followRuns(page: string, text: string, from: number, first: number): Run[] {
  const runs: Run[] = [];
  let inPage = from;
  let inText = first;
  while (inText + SEED <= text.length) {
    const found = page.indexOf(text.slice(inText, inText + SEED), inPage);
    if (found < 0 || (runs.length > 0 && found - inPage > MAX_GAP)) {
      inText += STEP;
      continue;
    }
    let run = growRun(page, text, found, inText);
    const last = runs.at(-1);
    if (last) {
      const overlap = Math.max(
        0,
        last.inPage + last.length - run.inPage,
        last.inText + last.length - run.inText,
      );
      run = {inText: run.inText + overlap, inPage: run.inPage + overlap, length: run.length - overlap};
    }
    runs.push(run);
    inPage = run.inPage + run.length;
    inText = run.inText + run.length;
  }
  return runs;
}

const sumLengths = (runs: Run[]): number => runs.reduce((sum, run) => sum + run.length, 0);

/** Returns the spans of a text of which the page shows a small part differently. */
function findSimilar(page: PageText, text: string, section: number): Span[] | null {
  if (text.length < SHORT) return null;
  let best: Run[] = [];
  // The first piece may differ, so the text is also looked up by later ones.
  for (let first = 0; first < text.length * (1 - ENOUGH) + SEED; first += SEED) {
    const seed = text.slice(first, first + SEED);
    if (seed.length < SEED) break;
    const starts: number[] = [];
    for (let at = page.letters.indexOf(seed); at >= 0; at = page.letters.indexOf(seed, at + 1)) {
      starts.push(at);
    }
    starts.sort((a, b) => Number(a < section) - Number(b < section) || a - b);
    for (const start of starts.slice(0, 8)) {
      const runs = followRuns(page.letters, text, start, first);
      if (sumLengths(runs) > sumLengths(best)) best = runs;
    }
    if (sumLengths(best) >= ENOUGH * text.length) break;
  }
  if (sumLengths(best) < ENOUGH * text.length) return null;
  const spans: Span[] = [];
  for (const {inPage, length} of best) {
    const last = spans.at(-1);
    if (last && inPage - last[1] <= BRIDGE) last[1] = inPage + length;
    else spans.push([inPage, inPage + length]);
  }
  return spans;
}

/**
 * Finds Markdown of the book in the page that shows it, by its letters and digits.
 *
 * Formulas are found by their TeX. If the page differs in a small part, the rest is returned.
 *
 * @param root - The article.
 * @param markdown - The text as the service cites it.
 * @param anchor - The id of the heading whose section is preferred if the text occurs repeatedly.
 * @returns Ranges in the order of the page; `null` if the page does not contain the text.
 */
export function findPassage(root: Element, markdown: string, anchor = ''): Range[] | null {
  const text = readMarkdown(markdown);
  if (!text) return null;
  const page = readPage(root);
  const section = findSection(page, root, anchor);
  const exact = findExact(page, text, section);
  const spans = exact ? [exact] : findSimilar(page, text, section);
  const ranges = (spans ?? []).map(([start, end]) => toRange(page, start, end));
  const shown = ranges.filter((range) => range !== null);
  return shown.length > 0 ? shown : null;
}
