/** The sub-questions of a compound question, by the patterns that come with the index. */

import type {Rules} from './searchIndex';
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
