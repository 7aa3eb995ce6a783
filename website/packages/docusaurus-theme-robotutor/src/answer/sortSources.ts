/** The sources of an answer, sorted by how the answer uses them. */

import type {Turn} from '../conversation/model';
import type {Source} from '../service/protocol';
import {readCitations} from './citationMarks';

/** The sources to list below an answer. */
interface SortedSources {
  /** Sources that the answer cites and does not quote. */
  cited: Source[];
  /** Sources that the answer does not use. */
  near: Source[];
}

/** Sorts the sources of an answer. A source that is quoted in the answer is in neither list. */
export function sortSources(turn: Turn): SortedSources {
  const quoted = new Set(
    isQuoted(turn) ? turn.passages.map((passage) => passage.number) : [],
  );
  const numbers = new Set([
    ...turn.sentences.flatMap((sentence) => sentence.cited),
    ...readCitations(turn.text),
  ]);
  const seen = new Set<number>();
  const others = turn.sources.filter((source) => {
    const isNew = !seen.has(source.number) && !quoted.has(source.number);
    seen.add(source.number);
    return isNew;
  });
  if (isQuoted(turn)) {
    return {cited: [], near: others}; // a quotation is all that the answer says
  }
  return {
    cited: others.filter((source) => numbers.has(source.number)),
    near: others.filter((source) => !numbers.has(source.number)),
  };
}

/**
 * Returns the number that the reader sees for a source.
 *
 * A text cites sources by their own numbers. Quotations are numbered from top to bottom, and the
 * other sources after them.
 */
export function showNumber(turn: Turn, number: number): number {
  if (!isQuoted(turn)) {
    return number;
  }
  const order = [...turn.passages, ...turn.sources].map((each) => each.number);
  return [...new Set(order)].indexOf(number) + 1 || number;
}

/** Returns true if the answer is shown as quotations from the book. */
export function isQuoted(turn: Turn): boolean {
  return turn.kind === 'extracted' && turn.passages.length > 0;
}
