/** The part of a source that is highlighted after a jump. */

import type {Turn} from '../conversation/model';
import type {Passage} from '../service/protocol';
import {dropHeading} from './plainText';

/**
 * Returns the Markdown that a citation's jump highlights; empty if the source is unknown.
 *
 * A quoted answer highlights the sentences that the service marked. A written answer highlights
 * the source's sentences that share the most words with the citing sentence. If they share too
 * little, the whole text of the source is highlighted.
 */
export function chooseQuote(turn: Turn, number: number, sentenceText = ''): string {
  const source = turn.sources.find((each) => each.number === number);
  const passage = turn.passages.find((each) => each.number === number);
  if (turn.kind === 'extracted' && passage) {
    return readHighlights(passage);
  }
  const text = dropHeading(source?.text ?? passage?.text ?? '');
  return (sentenceText && findAgreeing(text, sentenceText)) || text;
}

/** Returns the sentences of a passage that the service marked; all of it if none is marked. */
export function readHighlights(passage: Passage): string {
  const quotes = toTextOffsets(passage.text, passage.highlights)
    .map(([start, end]) => passage.text.slice(start, end).trim())
    .filter((quote) => quote !== '');
  return quotes.length > 0 ? quotes.join('\n\n') : passage.text;
}

/**
 * Returns offsets in a JavaScript string for offsets of the service.
 *
 * The service counts characters; JavaScript counts an emoji as two. Pairs outside the text are
 * left out.
 */
export function toTextOffsets(text: string, pairs: [number, number][]): [number, number][] {
  const offsets: number[] = [0];
  for (const character of text) {
    offsets.push(offsets[offsets.length - 1]! + character.length);
  }
  return pairs.flatMap(([start, end]): [number, number][] => {
    const from = offsets[start];
    const to = offsets[Math.min(end, offsets.length - 1)];
    return from !== undefined && to !== undefined && from < to ? [[from, to]] : [];
  });
}

const MIN_SHARED_WORDS = 2;
const MIN_SHARE = 0.25;
const NEIGHBOR_SHARE = 0.6;

/** Returns the neighboring sentences of a text that agree most with a sentence, or ''. */
function findAgreeing(text: string, sentence: string): string {
  const wanted = readWords(sentence);
  if (wanted.size === 0) {
    return '';
  }
  const spans = splitSentences(text);
  const rated = spans.map(([start, end]) => {
    const found = readWords(text.slice(start, end));
    const shared = [...found].filter((word) => wanted.has(word)).length;
    // Long sentences share more words by chance.
    return {shared, score: shared / Math.sqrt(found.size || 1)};
  });
  const best = rated.reduce((top, each, at) => (each.score > rated[top]!.score ? at : top), 0);
  const shared = rated[best]?.shared ?? 0;
  if (shared < Math.min(MIN_SHARED_WORDS, wanted.size) || shared / wanted.size < MIN_SHARE) {
    return '';
  }
  const isNear = (at: number): boolean =>
    (rated[at]?.score ?? 0) >= rated[best]!.score * NEIGHBOR_SHARE;
  let first = best;
  let last = best;
  while (isNear(first - 1)) {
    first -= 1;
  }
  while (isNear(last + 1)) {
    last += 1;
  }
  return text.slice(spans[first]![0], spans[last]![1]).trim();
}

/** Returns the start and end of each sentence of a Markdown text, in order. */
export function splitSentences(text: string): [number, number][] {
  const spans: [number, number][] = [];
  const ends = /[.!?…]+[)\]"'”’»*_]*\s+|[。！？]+\s*|\n{2,}|\n(?=[ \t]*(?:[-*+]|\d+[.)])[ \t])|$/g;
  let start = 0;
  for (const match of text.matchAll(ends)) {
    const end = match.index + match[0].length;
    const before = text.slice(start, match.index);
    // "2. " begins an item of a list, and "e.g. " does not end a sentence.
    const isEnd = !/(?:^|\s)(?:\d+|e\.g|i\.e|etc|vs|cf|Fig|Eq|No)$/.test(before);
    if (end > start && (isEnd || end === text.length)) {
      spans.push([start, end]);
      start = end;
    }
  }
  return spans.filter(([from, to]) => text.slice(from, to).trim() !== '');
}

const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Khmer}]/u;

/** Returns the distinct words of a text, by their first six letters to ignore endings. */
function readWords(text: string): Set<string> {
  const found = new Set<string>();
  for (const [word] of text.normalize('NFKC').toLowerCase().matchAll(/[\p{L}\p{N}\p{M}]+/gu)) {
    if (UNSPACED.test(word)) {
      // Pairs of characters stand for words where words are not separated.
      for (let at = 0; at + 1 < word.length; at += 1) {
        found.add(word.slice(at, at + 2));
      }
    } else if (word.length > 2 || /\p{N}/u.test(word)) {
      found.add(word.slice(0, 6));
    }
  }
  return found;
}
