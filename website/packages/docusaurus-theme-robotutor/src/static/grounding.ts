/** The library's rule that decides how well passages answer a question. */

import type {Level} from '../service/protocol';
import type {Candidate, Found, Ranking, Search} from './ranking';
import {sum} from './ranking';
import type {Rules, SearchIndex} from './searchIndex';
import {findWords, type TermReader} from './terms';
import {addOtherForms, findFormWords} from './wording';

/** How well the book answers a question. */
export interface Grounding {
  level: Level;
  /** The estimated probability that the passages contain the answer. */
  confidence: number;
}

/** Decides how well the passages that were found answer a question. */
export function judge(
  index: SearchIndex,
  terms: TermReader,
  ranking: Ranking,
  search: Search,
  found: Found,
): Grounding {
  const {rules, passages} = index;
  const best = found.hits.slice(0, rules.evidence_depth);
  if (best.length === 0) {
    return {level: 'not_covered', confidence: 0};
  }
  const typical = found.weights.size > 0 ? sum(found.weights.values()) / found.weights.size : 1;
  const weights = new Map(
    terms.readTerms(search.text).map((term) => [term, found.weights.get(term) ?? typical]),
  );
  const total = sum(weights.values());
  const share = (isFound: (term: string) => boolean): number =>
    total > 0
      ? sum([...weights].filter(([term]) => isFound(term)).map(([, weight]) => weight)) / total
      : 0;
  const words = compareWords(terms, ranking, search, found, best);
  const {abbreviations} = search;
  const cover = Math.max(
    ...best.map(({at}) =>
      share(addOtherForms((term) => ranking.contains(term, at), abbreviations)),
    ),
  );
  const known = share((term) => !found.weights.has(term) || ranking.knows(term));
  const wordCount = countWords(rules, terms, search, words.length);
  const semantic = Math.max(...best.map(readNearness));
  const rule = rules.grounding;
  const logit =
    rule.semantic * semantic +
    rule.support * (words.length > 0 ? findWeakest(words, rules.weakest) : semantic) +
    rule.cover * cover +
    rule.known * known +
    rule.headings *
      Math.max(
        ...best.map(({at}) =>
          share(addOtherForms((term) => ranking.names(term, at), abbreviations)),
        ),
      ) +
    rule.length * Math.log(Math.max(1, wordCount)) +
    rule.log_size * Math.log(Math.max(1, passages.filter(search.allows).length)) +
    rule.bias;
  let confidence = 1 / (1 + Math.exp(-Math.max(-60, Math.min(60, logit))));
  if (rule.near > 0 && semantic >= rule.near) {
    confidence = Math.max(confidence, rules.covered_from);
  }
  const asked = new Set(terms.readTerms(search.text).filter((term) => !search.formTerms.has(term)));
  if (best.some(({at}) => ranking.isHeadedBy(asked, at))) {
    confidence = Math.max(confidence, rules.answered_from);
  }
  const isFoundTerm = addOtherForms(
    (term) => best.some(({at}) => ranking.contains(term, at)),
    abbreviations,
  );
  if (
    lacksAskedFact(index, terms, best, search.text) ||
    lacksQualifier(index, terms, best, search.text, isFoundTerm)
  ) {
    confidence = Math.min(confidence, rules.unanswered);
  }
  const level = chooseLevel(rules, confidence);
  const covers = Math.max(rules.covers, semantic >= rules.related_from ? 0 : known);
  const isFound = cover >= covers || hasExactWord(rules, terms, ranking, search, best);
  return {level: level === 'not_covered' && isFound ? 'closest_passages' : level, confidence};
}

/** Returns the number of words of a question, with those of the long forms of abbreviations. */
function countWords(
  rules: Rules,
  terms: TermReader,
  search: Search,
  compared: number,
): number {
  if (compared === 0) {
    return 0;
  }
  const spans = findFormWords(search.text, rules.counted_forms, terms);
  const forms = terms
    .findContentWords(search.text)
    .filter(({start}) => spans.some(([first, last]) => first <= start && start < last)).length;
  const longer = search.abbreviations.unspelled.map(
    ([long]) => terms.findContentWords(long).length - 1,
  );
  return compared + forms + sum(longer);
}

/** Returns true if a code or identifier of the question is in one of the best passages. */
function hasExactWord(
  rules: Rules,
  terms: TermReader,
  ranking: Ranking,
  {text}: Search,
  best: readonly Candidate[],
): boolean {
  const exact = new RegExp(`^(?:${rules.exact[0]})$`, rules.exact[1]);
  return findWords(text)
    .filter(({text: word}) => exact.test(word))
    .flatMap(({text: word}) => terms.readWord(word))
    .some((term) => best.some(({at}) => ranking.contains(term, at)));
}

/** Returns the mean of a passage's two similarities to the question. */
export const readNearness = ({dense, windows}: Candidate): number => (dense + windows) / 2;

const chooseLevel = (rules: Rules, confidence: number): Grounding['level'] =>
  confidence >= rules.answered_from
    ? 'answered'
    : confidence >= rules.covered_from
      ? 'closest_passages'
      : 'not_covered';

interface WordNearness {
  weight: number;
  nearness: number;
}

/** Returns the words of a question with their similarity to the best passages. */
function compareWords(
  terms: TermReader,
  ranking: Ranking,
  search: Search,
  {weights}: Found,
  best: readonly Candidate[],
): WordNearness[] {
  const left = new Map(weights);
  const compared: WordNearness[] = [];
  const findTokens = (start: number, end: number): Float32Array[] =>
    search.vectors.tokens.filter((_, row) => {
      const span = search.vectors.spans[row];
      return span !== undefined && span[0] < end && span[1] > start;
    });
  const longTokens = new Map<string, Float32Array[]>();
  let at = search.text.length;
  for (const [long, short] of search.abbreviations.unspelled) {
    at += 2; // a bracket after a blank, or a comma and a blank
    longTokens.set(short, findTokens(at, at + long.length));
    at += long.length;
  }
  for (const word of terms.findContentWords(search.text)) {
    const own = terms.readWord(word.text).filter((term) => left.has(term));
    const heaviest = Math.max(...own.map((term) => left.get(term) ?? 0));
    own.forEach((term) => left.delete(term));
    const tokens = findTokens(word.start, word.end);
    const first = own[0];
    if (first === undefined || tokens.length === 0) {
      continue;
    }
    const forms = [tokens, longTokens.get(first) ?? []].filter((rows) => rows.length > 0);
    const nearness = best.flatMap((hit) => forms.map((rows) => ranking.compareWindows(rows, hit.at)));
    compared.push({weight: heaviest, nearness: Math.max(...nearness)});
  }
  return compared;
}

/** Returns a mean of the words' similarity, in which the lowest values dominate. */
function findWeakest(words: readonly WordNearness[], weakest: number): number {
  const total = sum(words.map(({weight}) => weight));
  const spread = sum(words.map(({weight, nearness}) => weight * Math.exp(-weakest * nearness)));
  return -Math.log(spread / total) / weakest;
}

/** Returns true if a question asks for a kind of fact that no passage contains. */
function lacksAskedFact(
  {rules, passages}: SearchIndex,
  terms: TermReader,
  best: readonly Candidate[],
  question: string,
): boolean {
  const [asked] = rules.asked_facts.flatMap(([pattern, answer]) => {
    const match = new RegExp(...pattern).exec(question);
    return match ? [{match, answer}] : [];
  });
  if (!asked) {
    return false;
  }
  const wanted = new Set(terms.readTerms(question));
  const named = new Set(terms.readTerms(asked.match.groups?.of ?? question));
  return !best.some(({at}) => {
    const {text, sentences} = passages[at]!;
    return sentences.some(([start, end]) => {
      const sentence = text.slice(start, end);
      const fact = new RegExp(...asked.answer).exec(sentence);
      return (
        fact !== null &&
        !terms.readTerms(fact.groups?.fact ?? fact[0]).every((term) => wanted.has(term)) &&
        (fact.groups?.fact !== undefined ||
          terms.readTerms(sentence).some((term) => named.has(term)))
      );
    });
  });
}

/** Returns true if a short question names a case or a number that no passage contains. */
function lacksQualifier(
  {rules, passages}: SearchIndex,
  terms: TermReader,
  best: readonly Candidate[],
  question: string,
  isFound: (term: string) => boolean,
): boolean {
  const [pattern, flags] = rules.qualified;
  const cases = [...question.matchAll(new RegExp(pattern, `${flags}g`))];
  const plural = new RegExp(...rules.plural);
  if (cases.length === 0 || question.trim().split(/\s+/).length > rules.max_qualified) {
    return false;
  }
  const text = best
    .map(({at}) => passages[at]!)
    .map((one) => `${one.title}\n${one.section}\n${one.text}`.toLowerCase())
    .join('\n');
  const has = (wanted: string): boolean => new RegExp(wanted).test(text);
  return !cases.every(({groups = {}}) => {
    const {number, unit = '', way, words = ''} = groups;
    if (number) {
      const before = /^(?:version|release)$/i.test(unit) ? '' : `${unit.toLowerCase()}\\W{0,2}`;
      return has(`${before}(?<![\\d.])${number.replaceAll('.', '\\.')}(?!\\.?\\d)`);
    }
    if (way) {
      return has(way.toLowerCase().replace(/\s+/, '\\s+'));
    }
    const joined = text.replace(/[\s-]/g, '');
    return words
      .toLowerCase()
      .split(/\s+/)
      .every((word) =>
        plural.test(word)
          ? has(`(?<!\\w)${word.replace(/[.+#-]/g, '\\$&')}(?!\\w)`)
          : terms.readTerms(word).every(isFound) || joined.includes(word),
      );
  });
}
