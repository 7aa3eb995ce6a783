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
// Places at which a text that occurs repeatedly is tried.
const MAX_TRIES = 8;
// Letters between two pieces that are highlighted with them.
const BRIDGE = 12;

type Span = [start: number, end: number];

/** The place where a run of equal letters is in the text, and where it is in the page. */
interface Run {
  inText: number;
  inPage: number;
  length: number;
}

/** Returns the number of letters before the section of a heading; 0 if there is no such heading. */
function findSection(page: PageText, root: Element, anchor: string): number {
  const heading = anchor ? root.ownerDocument.getElementById(anchor) : null;
  return heading && root.contains(heading) ? lettersBefore(page, heading) : 0;
}

/** Returns the places of a text in the page. A short text must be whole words. */
function findPlaces(page: PageText, text: string, from = 0, until = Infinity): number[] {
  const places: number[] = [];
  for (let at = page.letters.indexOf(text, from); at >= 0; at = page.letters.indexOf(text, at + 1)) {
    if (at > until) break;
    if (text.length >= SHORT || areWholeWords(page, at, at + text.length)) places.push(at);
  }
  return places;
}

/** Sorts places so that the section comes first, then what follows it, then what is before it. */
const preferSection = (places: number[], section: number): number[] =>
  [...places.filter((at) => at >= section), ...places.filter((at) => at < section).reverse()];

/** Returns the runs of a text's lines from its line number `first` on, which is at `place`. */
function followLines(page: PageText, lines: string[], first: number, place: number): Run[] {
  const runs: Run[] = [];
  let inText = 0;
  let inPage = place;
  lines.forEach((line, number) => {
    if (number >= first) {
      const until = number === first ? place : inPage + MAX_GAP;
      const at = findPlaces(page, line, inPage, until)[0];
      if (at !== undefined) {
        runs.push({inText, inPage: at, length: line.length});
        inPage = at + line.length;
      }
    }
    inText += line.length;
  });
  return runs;
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

/** Returns the runs of a text that the page shows with something between its lines. */
function findLines(page: PageText, lines: string[], section: number): Run[] {
  const allowed = lines.join('').length * (1 - ENOUGH);
  let best: Run[] = [];
  for (let first = 0, skipped = 0; first < lines.length && skipped <= allowed; first += 1) {
    const line = lines[first] ?? '';
    for (const place of preferSection(findPlaces(page, line), section).slice(0, MAX_TRIES)) {
      const runs = followLines(page, lines, first, place);
      if (sumLengths(runs) > sumLengths(best)) best = runs;
    }
    skipped += line.length;
  }
  return best;
}

/** Returns the runs of a text of which the page shows a small part differently. */
function findRuns(page: PageText, text: string, section: number): Run[] {
  let best: Run[] = [];
  for (let first = 0; first <= text.length * (1 - ENOUGH); first += SEED) {
    const seed = text.slice(first, first + SEED);
    const places: number[] = [];
    for (let at = page.letters.indexOf(seed); at >= 0; at = page.letters.indexOf(seed, at + 1)) {
      places.push(at);
    }
    for (const place of preferSection(places, section).slice(0, MAX_TRIES)) {
      const runs = followRuns(page.letters, text, place, first);
      if (sumLengths(runs) > sumLengths(best)) best = runs;
    }
    if (sumLengths(best) >= ENOUGH * text.length) break;
  }
  return best;
}

/** Returns the spans of a text that differs from the page in a small part; empty if too much does. */
function findSimilar(page: PageText, lines: string[], section: number): Span[] {
  const text = lines.join('');
  if (text.length < SHORT) return [];
  let best = findLines(page, lines, section);
  if (sumLengths(best) < text.length) {
    const runs = findRuns(page, text, section);
    if (sumLengths(runs) > sumLengths(best)) best = runs;
  }
  if (sumLengths(best) < ENOUGH * text.length) return [];
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
  const lines = readMarkdown(markdown);
  if (lines.length === 0) return null;
  const text = lines.join('');
  const page = readPage(root);
  const section = findSection(page, root, anchor);
  const place = preferSection(findPlaces(page, text), section)[0];
  const spans: Span[] =
    place === undefined ? findSimilar(page, lines, section) : [[place, place + text.length]];
  return spans.length > 0 ? spans.map(([start, end]) => toRange(page, start, end)) : null;
}
