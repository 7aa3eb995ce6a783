import {useRef} from 'react';
import {useLocation} from '@docusaurus/router';
import {decode} from '../addresses';
import {findArticle, NOT_TEXT} from '../article';
import type {ScopeId} from '../compose/ScopeChoice';
import type {Heading, Page} from '../service/requests';
import {MAX_SUGGESTIONS} from './maxSuggestions';
import type {Book} from './useBook';
import {words} from './words';

const MAX_HEADING_CHARS = 70;

/** A question that the panel offers, and the part of the book that it is asked of. */
export interface Suggestion {
  question: string;
  part: ScopeId;
}

/**
 * Returns questions for an empty panel, at once: about the sections of the page that the reader is
 * on, or elsewhere about the subjects of the book.
 *
 * They stay the same while the reader is on the page, so that no button moves under the pointer.
 */
export function useSuggestions({page, pages}: Book, subjects: string[] = []): Suggestion[] {
  const {pathname} = useLocation();
  const kept = useRef<{pathname: string; made: Suggestion[]} | null>(null);
  if (kept.current?.pathname !== pathname || kept.current.made.length === 0) {
    const questions = suggestQuestions(page?.sections ?? readHeadings(), page, pages);
    const about = questions.map((question): Suggestion => ({question, part: 'page'}));
    const others = subjects.map(
      (title): Suggestion => ({question: words.bookSuggestion(title), part: 'book'}),
    );
    kept.current = {pathname, made: about.length > 0 ? about : others};
  }
  return kept.current.made;
}

/** Returns the headings of the page's article; nothing on a page that is not of the docs. */
function readHeadings(): Heading[] {
  const article = findArticle((found) => found.matches('.theme-doc-markdown'));
  return Array.from(article?.querySelectorAll('h2, h3') ?? [], (element) => {
    const copy = element.cloneNode(true) as Element;
    const hasFormula = copy.querySelector('.katex') !== null;
    copy.querySelectorAll(NOT_TEXT).forEach((part) => part.remove());
    const heading = hasFormula ? '' : (copy.textContent ?? '').trim();
    return {heading, url: '', level: Number(element.tagName[1])};
  });
}

/**
 * Returns questions about the sections of a page.
 *
 * Main sections come first, then their subsections. A heading that several pages have, such as
 * "Summary", says nothing about this page, so it is left out. Until other pages are known, headings
 * of one word come last, because most headings that pages share have one word.
 */
export function suggestQuestions(
  sections: Heading[],
  page: Page | null,
  pages: Page[],
): string[] {
  const others = pages.filter((each) => each !== page);
  const shared = new Set(
    others.flatMap((each) => each.sections.map(({heading}) => normalize(heading))),
  );
  const own = sections.filter(
    ({heading, level}) => level <= 3 && isSubject(heading) && !shared.has(normalize(heading)),
  );
  const rank = ({heading, level}: Heading): number =>
    level + (page === null && !/\s/.test(dropNumber(heading)) ? 2 : 0);
  const headings = [...own]
    .sort((one, other) => rank(one) - rank(other))
    .map(({heading}) => dropNumber(heading));
  return [...new Set(headings)].slice(0, MAX_SUGGESTIONS).map((heading) => makeQuestion(heading, words.suggestion));
}

/**
 * Returns questions about the sections after and before the one with an anchor, nearest first.
 *
 * Sections of a higher level come last: below them, a group of others may begin.
 */
export function suggestNeighbors({sections}: Page, anchor: string): string[] {
  const place = sections.findIndex(({url}) => decode(url.split('#')[1] ?? '') === anchor);
  const near = [...sections.slice(place + 1), ...sections.slice(0, Math.max(0, place)).reverse()];
  const {heading: cited = '', level: lowest = 0} = sections[place] ?? {};
  const isAbove = ({level}: Heading): number => Number(level < lowest);
  const sorted = near.sort((one, other) => isAbove(one) - isAbove(other));
  const headings = sorted.map(({heading}) => dropNumber(heading)).filter(isSubject);
  const own = dropNumber(cited);
  return [...new Set(headings)]
    .filter((heading) => heading !== own)
    .map((heading) => makeQuestion(heading, words.bookSuggestion));
}

/** Returns a heading that is a question as it is, and asks about any other. */
const makeQuestion = (heading: string, ask: (heading: string) => string): string =>
  /[?？؟]$/.test(heading) ? heading : ask(heading);

/** Removes the number of a section, such as `2.3` or `4)`. */
const dropNumber = (heading: string): string =>
  heading.replace(/^\s*(?:\d+\.)*\d+[.):]?\s+(?=\S)/, '').trim();

const normalize = (heading: string): string => dropNumber(heading).toLowerCase();

/** Returns false for headings without words, with formulas, or too long for a button. */
const isSubject = (heading: string): boolean =>
  /\p{L}{2}/u.test(heading) && heading.length <= MAX_HEADING_CHARS && !/[$`\\]/.test(heading);
