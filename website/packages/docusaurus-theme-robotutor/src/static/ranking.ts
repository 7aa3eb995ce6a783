/** The library's ranking: candidates of a question, one score from all channels, and the hits. */

import type {QuestionVectors} from './embedding';
import type {IndexedPassage, SearchIndex} from './searchIndex';
import {findWords, isLatin, type TermReader} from './terms';
import {addOtherForms, type Abbreviations} from './wording';

/** A question, ready to be searched for. */
export interface Search {
  text: string;
  /** The vectors of the text, with the long forms of its abbreviations after it. */
  vectors: QuestionVectors;
  /** The terms of the words that say in which form to answer. */
  formTerms: ReadonlySet<string>;
  abbreviations: Abbreviations;
  /** Returns true for the passages that may be found. */
  allows: (passage: IndexedPassage) => boolean;
  parts: Search[];
}

/** A passage that may answer a question, with its scores. */
export interface Candidate {
  /** The number of the passage. */
  at: number;
  dense: number;
  windows: number;
  bm25: number;
  /** The combined score by which hits are ordered. */
  score: number;
}

/** The passages that were chosen for a question, best first. */
export interface Found {
  hits: Candidate[];
  /** The weight of each term of the question in the book. */
  weights: Map<string, number>;
}

interface Gathered {
  candidates: Candidate[];
  far: {dense: number[]; bm25: number[]};
}

interface Distribution {
  mean: number;
  deviation: number;
}

/** Searches an index by the rules that come with it. */
export class Ranking {
  private readonly index: SearchIndex;
  private readonly terms: TermReader;

  constructor(index: SearchIndex, terms: TermReader) {
    this.index = index;
    this.terms = terms;
  }

  /** Returns the best passages for a question. */
  find(search: Search): Found {
    const {rules} = this.index;
    const weights = this.weighTerms(search);
    const gathered = this.gather(search);
    const count = Math.max(rules.top_k, search.parts.length > 0 ? rules.part_depth : 0);
    const fused = this.fuse(gathered, this.fitWeights([...weights.keys()]), sum(weights.values()));
    const [passages, bare] = this.arrange(this.favorExplaining(fused, weights, search.abbreviations), weights);
    let hits = this.select(passages, count, []);
    hits = this.select(bare, count, hits);
    if (search.parts.length > 0) {
      const parts = search.parts.map((part) => this.fuse(this.gather(part), rules.weights, 0));
      hits = this.placeParts(hits, parts);
    }
    return {hits: hits.slice(0, rules.top_k), weights};
  }

  /** Returns the score of a question's tokens with a passage's nearest groups of words. */
  compareWindows(tokens: readonly Float32Array[], at: number): number {
    const {windows, window_steps, window_ends, dim} = this.index;
    const first = at > 0 ? window_ends[at - 1]! : 0;
    let total = 0;
    for (const token of tokens) {
      let best = -Infinity;
      for (let row = first; row < window_ends[at]!; row += 1) {
        best = Math.max(best, dot(token, windows, row * dim) * window_steps[row]!);
      }
      total += best;
    }
    return total / tokens.length;
  }

  /** Returns true if a passage contains a term, in its text or its headings. */
  contains(term: string, at: number): boolean {
    const {posting_passages} = this.index;
    const [first, end] = this.findPostings(term);
    let low = first;
    let high = end;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (posting_passages[middle]! < at) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low < end && posting_passages[low]! === at;
  }

  /** Returns true if the book contains a term. */
  knows(term: string): boolean {
    const [first, end] = this.findPostings(term);
    return first < end;
  }

  /** Returns true if the title or a heading of a passage contains a term. */
  names(term: string, at: number): boolean {
    return this.readSet('path', at).has(term);
  }

  /** Returns true if a passage has text, and its nearest heading has these terms and no other. */
  isHeadedBy(terms: ReadonlySet<string>, at: number): boolean {
    const heading = this.readSet('heading', at);
    const isSame = heading.size === terms.size && [...heading].every((term) => terms.has(term));
    return isSame && this.index.passages[at]!.bare === null;
  }

  private weighTerms(search: Search): Map<string, number> {
    const {passages, rules} = this.index;
    const unknown = Math.log(2 * passages.length + 2);
    const words = new Map<string, string>();
    for (const {text: word} of findWords(search.text)) {
      for (const term of this.terms.readWord(word)) {
        if (!words.has(term) && words.size < rules.max_terms) {
          words.set(term, word);
        }
      }
    }
    const weights = new Map<string, number>();
    const byWord = new Map<string, number[]>();
    for (const [term, word] of words) {
      const share = search.formTerms.has(term) ? rules.form_share : 1;
      const weight = this.knows(term) ? this.findHighest(term) * share : unknown;
      weights.set(term, weight);
      byWord.set(word, [...(byWord.get(word) ?? []), weight]);
    }
    // An identifier such as ROS2 has several terms, but weighs no more than its heaviest one.
    for (const [term, word] of words) {
      const own = byWord.get(word) ?? [];
      weights.set(term, ((weights.get(term) ?? 0) * Math.max(...own)) / sum(own));
    }
    return weights;
  }

  /** Returns the highest score that a passage has for one term. */
  private findHighest(term: string): number {
    const {idf, posting_weights, termIds} = this.index;
    const [first, end] = this.findPostings(term);
    let highest = 0;
    for (let entry = first; entry < end; entry += 1) {
      highest = Math.max(highest, posting_weights[entry]!);
    }
    return idf[termIds.get(term) ?? 0]! * readWeight(highest);
  }

  private findPostings(term: string): [number, number] {
    const id = this.index.termIds.get(term);
    if (id === undefined) {
      return [0, 0];
    }
    const ends = this.index.posting_ends;
    return [id > 0 ? ends[id - 1]! : 0, ends[id]!];
  }

  private readSet(name: 'path' | 'heading', at: number): Set<string> {
    const ends = this.index[`${name}_ends`];
    const ids = this.index[`${name}_terms`].subarray(at > 0 ? ends[at - 1] : 0, ends[at]);
    return new Set(Array.from(ids, (id) => this.index.terms[id]!));
  }

  /** Finds the best passages by vector and by words, and scores the near ones in every channel. */
  private gather(search: Search): Gathered {
    const {index} = this;
    const {depth, near_share, weights} = index.rules;
    const dense = new Map<number, number>();
    index.passages.forEach((passage, at) => {
      if (search.allows(passage)) {
        dense.set(at, dot(search.vectors.dense, index.dense, at * index.dim) * index.dense_steps[at]!);
      }
    });
    const bm25 = this.scoreTerms(search, dense);
    const bestDense = takeBest(dense, depth);
    const bestBm25 = takeBest(bm25, depth);
    const union = [...new Set([...bestDense.keys(), ...bestBm25.keys()])].sort((a, b) => a - b);
    const totals = new Float64Array(union.length);
    for (const [found, weight] of [
      [bestDense, weights.semantic],
      [bestBm25, weights.bm25],
    ] as const) {
      const scores = [...found.values()];
      const most = found.size < depth ? 0 : Math.min(...scores);
      const distribution = this.measure(scores);
      place(distribution, union.map((at) => found.get(at) ?? most)).forEach((own, row) => {
        totals[row]! += weight * own;
      });
    }
    const near = union
      .map((at, row) => ({at, total: totals[row]!}))
      .sort((one, other) => other.total - one.total || one.at - other.at)
      .slice(0, Math.max(1, Math.round(near_share * depth)))
      .map(({at}) => at)
      .sort((one, other) => one - other);
    const kept = new Set(near);
    const listFar = (found: Map<number, number>): number[] =>
      [...found].filter(([at]) => !kept.has(at)).map(([, score]) => score);
    return {
      candidates: near.map((at) => ({
        at,
        dense: dense.get(at) ?? 0,
        windows: this.compareWindows(search.vectors.tokens, at),
        bm25: bm25.get(at) ?? 0,
        score: 0,
      })),
      far: {dense: listFar(bestDense), bm25: listFar(bestBm25)},
    };
  }

  private scoreTerms(search: Search, allowed: ReadonlyMap<number, number>): Map<number, number> {
    const {idf, posting_passages, posting_weights, termIds} = this.index;
    const scores = new Map<number, number>();
    for (const [term, share] of this.listTerms(search)) {
      const id = termIds.get(term);
      const [first, end] = this.findPostings(term);
      for (let entry = first; id !== undefined && entry < end; entry += 1) {
        const at = posting_passages[entry]!;
        if (allowed.has(at)) {
          const score = idf[id]! * readWeight(posting_weights[entry]!) * share;
          scores.set(at, (scores.get(at) ?? 0) + score);
        }
      }
    }
    return scores;
  }

  /** Returns the terms that are searched, with the share of its weight that each one has. */
  private listTerms({text, formTerms, abbreviations}: Search): Map<string, number> {
    const {form_share} = this.index.rules;
    const shares = new Map(
      this.terms.readTerms(text).map((term) => [term, formTerms.has(term) ? form_share : 1]),
    );
    // The terms of another form share the weight of one term: a text needs only one form.
    const others = [
      ...abbreviations.unspelled.map(([, , long]) => long),
      ...abbreviations.unshortened.map(([, short]) => [short]),
    ];
    for (const terms of others) {
      for (const term of terms) {
        if (!shares.has(term)) {
          shares.set(term, 1 / terms.length);
        }
      }
    }
    return shares;
  }

  private fitWeights(terms: readonly string[]): SearchIndex['rules']['weights'] {
    const {weights} = this.index.rules;
    const foreign = terms.filter((term) => !isLatin(term)).length;
    return 2 * foreign <= terms.length
      ? weights
      : {...weights, semantic: weights.bm25, bm25: weights.semantic};
  }

  /** Returns the candidates with one score from all channels, best first. */
  private fuse(
    {candidates, far}: Gathered,
    weights: SearchIndex['rules']['weights'],
    termWeight: number,
  ): Candidate[] {
    const {passages, rules} = this.index;
    const byText = new Map<number, [number, number, number]>();
    for (const {at, dense, windows, bm25} of candidates) {
      const {hash} = passages[at]!;
      const held = byText.get(hash) ?? [dense, windows, bm25];
      byText.set(hash, [
        Math.max(held[0], dense),
        Math.max(held[1], windows),
        Math.max(held[2], bm25),
      ]);
    }
    const texts = [...byText.values()];
    const nearDense = texts.map((own) => own[0]);
    const nearWindows = texts.map((own) => own[1]);
    const nearBm25 = texts.map((own) => own[2]);
    const farDense = [...new Set(far.dense)];
    const ownDense = this.measure(nearDense);
    const ownWindows = this.measure(nearWindows);
    const ratio = ownDense.deviation > 1e-9 ? ownWindows.deviation / ownDense.deviation : 0;
    const farWindows = farDense.map((score) => ownWindows.mean + ratio * (score - ownDense.mean));
    const placed = [
      place(this.measure([...nearDense, ...farDense]), candidates.map(({dense}) => dense)),
      place(this.measure([...nearWindows, ...farWindows]), candidates.map(({windows}) => windows)),
      place(
        this.measure([...nearBm25, ...new Set(far.bm25)]),
        candidates.map(({bm25}) => bm25),
      ),
    ];
    const best = Math.max(0, ...candidates.map(({bm25}) => bm25));
    const isTrusted = termWeight <= 0 || weights.semantic === 0;
    const trust = isTrusted ? 1 : Math.min(1, best / termWeight / rules.full_cover);
    const bm25Weight = weights.bm25 * trust;
    const semantic = weights.semantic + weights.bm25 - bm25Weight;
    const windowsWeight = semantic * weights.windows;
    const fused = candidates.map(
      (_, row) =>
        (semantic - windowsWeight) * placed[0]![row]! +
        windowsWeight * placed[1]![row]! +
        bm25Weight * placed[2]![row]!,
    );
    const byPage = new Map<number, number[]>();
    candidates.forEach(({at}, row) => {
      const {page} = passages[at]!;
      byPage.set(page, [...(byPage.get(page) ?? []), fused[row]!]);
    });
    const means = new Map(
      [...byPage].map(([page, scores]) => {
        const top = scores.sort((one, other) => other - one).slice(0, rules.document_depth);
        return [page, sum(top) / top.length];
      }),
    );
    return this.sort(
      candidates.map((candidate, row) => ({
        ...candidate,
        score: fused[row]! + weights.document * (means.get(passages[candidate.at]!.page) ?? 0),
      })),
    );
  }

  /** Returns ranked candidates in an order that favors the texts that explain the subject. */
  private favorExplaining(
    ranked: Candidate[],
    weights: ReadonlyMap<string, number>,
    abbreviations: Abbreviations,
  ): Candidate[] {
    const {passages, rules} = this.index;
    const total = sum(weights.values());
    if (total <= 0) {
      return ranked;
    }
    const isAsked = addOtherForms((term) => weights.has(term), abbreviations);
    const share = (terms: ReadonlySet<string>): number => {
      const has = addOtherForms((term) => terms.has(term), abbreviations);
      return sum([...weights].filter(([term]) => has(term)).map(([, weight]) => weight));
    };
    const rate = (at: number): number => {
      const heading = this.readSet('heading', at);
      const others = [...heading].filter((term) => !isAsked(term)).length;
      return (
        (rules.path * share(this.readSet('path', at))) / total +
        (rules.heading * share(heading)) / (total + others) +
        rules.length * Math.log1p(passages[at]!.words) -
        (passages[at]!.is_post ? rules.post : 0)
      );
    };
    return this.sort(
      ranked.map((candidate) => ({...candidate, score: candidate.score + rate(candidate.at)})),
    );
  }

  private sort(candidates: Candidate[]): Candidate[] {
    const {passages, page_keys} = this.index;
    return candidates.sort((one, other) => {
      const [left, right] = [passages[one.at]!, passages[other.at]!];
      const byPage = compare(page_keys[left.page]!, page_keys[right.page]!);
      return (
        other.score - one.score || byPage || left.chunk_index - right.chunk_index || one.at - other.at
      );
    });
  }

  /** Returns the passages in the order in which they are chosen, and the headings without text. */
  private arrange(
    ranked: readonly Candidate[],
    weights: ReadonlyMap<string, number>,
  ): [Candidate[], Candidate[]] {
    const {passages, rules} = this.index;
    const isBare = ({at}: Candidate): boolean => {
      const {bare} = passages[at]!;
      if (bare === null) {
        return false;
      }
      const own = new Set(this.terms.readTerms(bare));
      return weights.size === 0 || ![...weights.keys()].every((term) => own.has(term));
    };
    const first: Candidate[] = [];
    const others: Candidate[] = [];
    const seen = new Set<number>();
    for (const candidate of ranked.filter((one) => !isBare(one))) {
      const {section_key: section} = passages[candidate.at]!;
      (seen.has(section) ? others : first).push(candidate);
      seen.add(section);
    }
    const before = new Map<number, number>();
    const spread = first.map((candidate) => {
      const {page} = passages[candidate.at]!;
      const count = before.get(page) ?? 0;
      before.set(page, count + 1);
      const penalty = rules.crowding * Math.max(0, count - rules.uncrowded + 1);
      return {candidate, score: candidate.score - penalty};
    });
    spread.sort((one, other) => other.score - one.score);
    return [[...spread.map(({candidate}) => candidate), ...others], ranked.filter(isBare)];
  }

  /** Adds candidates until there are enough, without equal texts and near-duplicates. */
  private select(
    arranged: readonly Candidate[],
    count: number,
    before: readonly Candidate[],
  ): Candidate[] {
    const {passages, rules} = this.index;
    const chosen = [...before];
    const hashes = new Set(chosen.map(({at}) => passages[at]!.hash));
    for (const candidate of arranged) {
      if (chosen.length >= count) {
        break;
      }
      const {hash} = passages[candidate.at]!;
      const isNear = (kept: Candidate): boolean =>
        this.comparePassages(candidate.at, kept.at) > rules.dedup_threshold;
      if (!hashes.has(hash) && !chosen.some(isNear)) {
        hashes.add(hash);
        chosen.push(candidate);
      }
    }
    return chosen;
  }

  private comparePassages(one: number, other: number): number {
    const {dense, dense_steps, dim} = this.index;
    let total = 0;
    for (let column = 0; column < dim; column += 1) {
      total += dense[one * dim + column]! * dense[other * dim + column]!;
    }
    return total * dense_steps[one]! * dense_steps[other]!;
  }

  /** Moves the best hit of each sub-question up, to follow the question's first hits. */
  private placeParts(chosen: readonly Candidate[], parts: readonly Candidate[][]): Candidate[] {
    const {passages, rules} = this.index;
    const found = new Map(chosen.slice(0, rules.part_depth).map((hit) => [hit.at, hit]));
    const first = chosen.slice(0, rules.first_place);
    for (const ranked of parts) {
      const best = ranked.map(({at}) => found.get(at)).find((hit) => hit !== undefined);
      const sections = new Set(first.map(({at}) => passages[at]!.section_key));
      if (best && !sections.has(passages[best.at]!.section_key)) {
        first.push(best);
      }
    }
    const taken = new Set(first.map(({at}) => at));
    return [...first, ...chosen.filter(({at}) => !taken.has(at))];
  }

  private measure(scores: readonly number[]): Distribution {
    const top = [...scores]
      .sort((one, other) => other - one)
      .slice(0, this.index.rules.statistics_depth);
    if (top.length === 0) {
      return {mean: 0, deviation: 0};
    }
    const mean = sum(top) / top.length;
    return {mean, deviation: Math.sqrt(sum(top.map((score) => (score - mean) ** 2)) / top.length)};
  }
}

/** Returns the sum of numbers. */
export function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) {
    total += value;
  }
  return total;
}

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

/** The highest weight of a term in a passage, which is written as 65535. */
const MAX_WEIGHT = 2.2;

const readWeight = (written: number): number => (written / 65535) * MAX_WEIGHT;

function dot(vector: Float32Array, rows: Int8Array | Int16Array, offset: number): number {
  let total = 0;
  for (let column = 0; column < vector.length; column += 1) {
    total += vector[column]! * rows[offset + column]!;
  }
  return total;
}

/** Returns the best scores by passage; equal scores are ordered by passage. */
const takeBest = (scores: ReadonlyMap<number, number>, count: number): Map<number, number> =>
  new Map([...scores].sort(([a, one], [b, other]) => other - one || a - b).slice(0, count));

/** Returns scores on a scale: 0 at three deviations below the mean, 1 at three above it. */
const place = ({mean, deviation}: Distribution, scores: readonly number[]): number[] =>
  scores.map((score) =>
    deviation < 1e-9 ? 0.5 : (score - mean + 3 * deviation) / (6 * deviation),
  );
