/** Words of a question that count in another way: words of the form, and abbreviations. */

import type {Abbreviation, Rules, SearchIndex} from './searchIndex';
import type {TermReader} from './terms';

type Span = [start: number, end: number];

/** Returns the places of the phrases that say in which form to answer, such as "in python code". */
export function findFormWords(
  question: string,
  forms: Rules['forms'],
  terms: TermReader,
): Span[] {
  const found = forms.flatMap(([source, flags]) =>
    Array.from(question.matchAll(new RegExp(source, `${flags}gd`)), ({indices}) => indices?.[1]),
  );
  const spans: Span[] = [];
  const ordered = found.filter((span): span is Span => span !== undefined);
  ordered.sort((one, other) => one[0] - other[0] || other[1] - one[1]);
  for (const span of ordered) {
    const last = spans[spans.length - 1];
    if (!last || span[0] >= last[1]) {
      spans.push(span);
    }
  }
  return terms.readTerms(blank(question, spans)).length > 0 ? spans : [];
}

/** Returns the terms that occur only in the phrases that name the form. */
export function findFormTerms(
  question: string,
  spans: readonly Span[],
  terms: TermReader,
): Set<string> {
  const named = spans.flatMap(([start, end]) => terms.readTerms(question.slice(start, end)));
  const others = new Set(terms.readTerms(blank(question, spans)));
  return new Set(named.filter((term) => !others.has(term)));
}

/** The abbreviations of which a question has one form and lacks the other. */
export interface Abbreviations {
  unspelled: Abbreviation[];
  unshortened: Abbreviation[];
}

/** Returns the abbreviations of the book of which a question has only one form. */
export function findAbbreviations(
  question: string,
  {abbreviations}: Pick<SearchIndex, 'abbreviations'>,
  terms: TermReader,
): Abbreviations {
  const asked = terms.readTerms(question);
  const joined = ` ${asked.join(' ')} `;
  const hasLong = ([, , long]: Abbreviation): boolean => joined.includes(` ${long.join(' ')} `);
  return {
    unspelled: abbreviations.by_short.filter((one) => asked.includes(one[1]) && !hasLong(one)),
    unshortened: abbreviations.by_long.filter((one) => !asked.includes(one[1]) && hasLong(one)),
  };
}

/** Returns those of a question's abbreviations of which a part of it has only one form. */
export function pickPresent(
  part: string,
  {unspelled, unshortened}: Abbreviations,
  terms: TermReader,
): Abbreviations {
  const abbreviations = {by_short: unspelled, by_long: unshortened};
  return findAbbreviations(part, {abbreviations}, terms);
}

/** Returns a question followed by the long forms of its abbreviations. */
export const spellOut = (text: string, {unspelled}: Abbreviations): string =>
  unspelled.length > 0 ? `${text} (${unspelled.map(([long]) => long).join(', ')})` : text;

/**
 * Returns a test for terms that also finds the other form of each abbreviation.
 *
 * @param has The test for the terms of a text.
 */
export function addOtherForms(
  has: (term: string) => boolean,
  {unspelled, unshortened}: Abbreviations,
): (term: string) => boolean {
  const added = new Set<string>();
  const hasNow = (term: string): boolean => added.has(term) || has(term);
  for (const [, short, long] of [...unspelled, ...unshortened]) {
    if (hasNow(short) || long.every(hasNow)) {
      [short, ...long].forEach((term) => added.add(term));
    }
  }
  return hasNow;
}

function blank(text: string, spans: readonly Span[]): string {
  let blanked = text;
  for (const [start, end] of spans) {
    blanked = blanked.slice(0, start) + ' '.repeat(end - start) + blanked.slice(end);
  }
  return blanked;
}
