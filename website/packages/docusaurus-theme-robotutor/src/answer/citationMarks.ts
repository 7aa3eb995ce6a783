/** Citations such as `[1]` and `[1, 2]` in the text of an answer. */

import {splitSentences} from './chooseQuote';

const CITATION = /\[(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\]/g;

/** Returns the numbers of all citations in a text, each once, in the order of the text. */
export function readCitations(text: string): number[] {
  const numbers = [...text.matchAll(CITATION)].flatMap(([, list = '']) => readNumbers(list));
  return [...new Set(numbers)];
}

function readNumbers(list: string): number[] {
  return list.split(/[,;]/).map((number) => Number.parseInt(number, 10));
}

/** A piece of text: plain, or a citation with its numbers. */
export interface Piece {
  text: string;
  /** Empty for plain text. */
  numbers: number[];
}

/** Splits a text at its citations. */
export function splitCitations(text: string): Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (const {0: written, 1: list = '', index} of text.matchAll(CITATION)) {
    pieces.push({text: text.slice(from, index), numbers: []});
    pieces.push({text: written, numbers: readNumbers(list)});
    from = index + written.length;
  }
  pieces.push({text: text.slice(from), numbers: []});
  return pieces.filter((piece) => piece.text !== '');
}

// A sentence of a text is far shorter; without a bound, many citations in a long paragraph would
// each read the whole paragraph again.
const MAX_SENTENCE = 600;

/** Returns the last sentence of a text, which a citation after it stands for. */
export function readLastSentence(text: string): string {
  const near = text.slice(-MAX_SENTENCE).trimEnd();
  const last = splitSentences(near).pop();
  return last ? near.slice(last[0], last[1]).trim() : '';
}
