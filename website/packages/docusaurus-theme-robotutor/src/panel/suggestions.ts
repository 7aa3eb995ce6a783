import type {Page} from '../service/requests';
import {MAX_SUGGESTIONS} from './maxSuggestions';
import {words} from './words';

const MAX_HEADING_CHARS = 70;

/**
 * Returns questions about the sections of the page that the reader is on.
 *
 * Main sections come first, then their subsections. A heading that several pages have, such as
 * "Summary", says nothing about this page, so it is left out.
 */
export function suggestQuestions(page: Page, pages: Page[]): string[] {
  const pagesWith = new Map<string, number>();
  for (const {sections} of pages) {
    for (const heading of new Set(sections.map((section) => normalize(section.heading)))) {
      pagesWith.set(heading, (pagesWith.get(heading) ?? 0) + 1);
    }
  }
  const own = page.sections.filter(
    ({heading, level}) =>
      level <= 3 && isSubject(heading) && (pagesWith.get(normalize(heading)) ?? 0) <= 1,
  );
  const headings = [
    ...own.filter(({level}) => level === 2),
    ...own.filter(({level}) => level === 3),
  ].map(({heading}) => dropNumber(heading));
  return [...new Set(headings)].slice(0, MAX_SUGGESTIONS).map(makeQuestion);
}

/** Returns a heading that is a question as it is, and asks about any other. */
const makeQuestion = (heading: string): string =>
  /[?？؟]$/.test(heading) ? heading : words.suggestion(heading);

/** Removes the number of a section, such as `2.3` or `4)`. */
const dropNumber = (heading: string): string =>
  heading.replace(/^\s*(?:\d+\.)*\d+[.):]?\s+(?=\S)/, '').trim();

const normalize = (heading: string): string => dropNumber(heading).toLowerCase();

/** Returns false for headings without words, with formulas, or too long for a button. */
const isSubject = (heading: string): boolean =>
  /\p{L}{2}/u.test(heading) && heading.length <= MAX_HEADING_CHARS && !/[$`\\]/.test(heading);
