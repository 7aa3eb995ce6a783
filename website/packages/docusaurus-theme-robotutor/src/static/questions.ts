/** Reading of a question before the search, by the patterns that come with the index. */

import type {Rules, SearchIndex} from './searchIndex';
import type {TermReader} from './terms';

/** Returns the two or three sub-questions of a compound question; none of a simple one. */
export function splitQuestion(question: string, rules: Rules, terms: TermReader): string[] {
  const plain = question.split(/\s+/).filter(Boolean).join(' ');
  if (plain.length > rules.max_compound_chars) {
    return [];
  }
  const count = (text: string): number => new Set(terms.readTerms(text)).size;
  const asks = new RegExp(`^(?:${rules.asks[0]})`, rules.asks[1]);
  const clauses = plain
    .split(new RegExp(...rules.sentence))
    .flatMap((sentence) => sentence.split(new RegExp(...rules.clause)))
    .map((clause) => clause.replace(/^[ ,.;?!]+|[ ,.;?!]+$/g, ''));
  const asked = clauses.filter((clause) => asks.test(clause) && count(clause) >= rules.clause_terms);
  if (asked.length >= 2) {
    return asked.slice(0, rules.max_parts);
  }
  const bare = plain.replace(/^[ .?!]+|[ .?!]+$/g, '');
  for (const pattern of rules.pairs) {
    const {one, other} = new RegExp(...pattern).exec(bare)?.groups ?? {};
    if (one !== undefined && other !== undefined) {
      const pair = [one, other].map((part) => part.replace(/^[ ,]+|[ ,]+$/g, ''));
      if (pair.every((part) => count(part) >= rules.pair_terms)) {
        return pair;
      }
    }
  }
  return [];
}

/** The kinds of small talk. The first kind that occurs decides the reply. */
const KINDS = ['about', 'farewell', 'thanks', 'greeting'] as const;

/** Returns the reply to a text that consists of small talk, such as "hello"; otherwise null. */
export function findReply(text: string, {rules, replies}: SearchIndex): string | null {
  const plain = text
    .toLowerCase()
    .replaceAll('\u2019', "'")
    .replace(new RegExp(rules.smiley[0], 'gi'), ' ');
  const words = plain.match(/[\p{L}\p{N}]+(?:'[\p{L}\p{N}]+)*/gu) ?? [];
  if (words.length > rules.max_talk_words || new RegExp(...rules.code_signs).test(plain)) {
    return null;
  }
  const phrase = new RegExp(rules.small_talk[0], `${rules.small_talk[1]}y`);
  const spoken = words.join(' ');
  const kinds = new Set<string>();
  while (phrase.lastIndex < spoken.length) {
    const {groups} = phrase.exec(spoken) ?? {};
    if (!groups) {
      return null;
    }
    const [kind] = Object.entries(groups).find(([, found]) => found !== undefined) ?? [''];
    kinds.add(kind === 'pointing' ? 'about' : kind);
  }
  const found = KINDS.find((kind) => kinds.has(kind));
  return found ? replies[found] : null;
}
