/** The search of the static mode: an index, the model and the rules in one place. */

import {embedQuestion, type Infer} from './embedding';
import {judge, type Grounding} from './grounding';
import {splitQuestion} from './questions';
import {Ranking, type Found, type Search} from './ranking';
import type {IndexedPassage, SearchIndex} from './searchIndex';
import {TermReader} from './terms';
import {Tokenizer} from './wordPieces';
import {findAbbreviations, findFormTerms, findFormWords, pickPresent, spellOut} from './wording';

/** The passages for a question, and how well they answer it. */
export interface Result extends Found {
  grounding: Grounding;
}

/** Searches an index. */
export class Engine {
  readonly index: SearchIndex;
  readonly terms: TermReader;
  readonly ranking: Ranking;
  private readonly tokenizer: Tokenizer;
  private readonly infer: Infer;

  constructor(index: SearchIndex, infer: Infer) {
    this.index = index;
    this.infer = infer;
    this.terms = new TermReader(index.rules.stop_words);
    this.ranking = new Ranking(index, this.terms);
    this.tokenizer = new Tokenizer(index.word_pieces);
  }

  /** Returns the best passages for a question among those that are allowed. */
  async search(
    question: string,
    allows: (passage: IndexedPassage) => boolean = () => true,
  ): Promise<Result> {
    const text = question.trim();
    const abbreviations = findAbbreviations(text, this.index, this.terms);
    const prepare = async (part: string): Promise<Search> => {
      const formWords = findFormWords(part, this.index.rules.forms, this.terms);
      const own = pickPresent(part, abbreviations, this.terms);
      return {
        text: part,
        vectors: await embedQuestion(
          spellOut(part, own),
          formWords,
          this.tokenizer,
          this.terms,
          this.infer,
        ),
        formTerms: findFormTerms(part, formWords, this.terms),
        abbreviations: own,
        allows,
        parts: [],
      };
    };
    const search = await prepare(text);
    for (const part of splitQuestion(text, this.index.rules, this.terms)) {
      search.parts.push(await prepare(part));
    }
    const found = this.ranking.find(search);
    return {...found, grounding: judge(this.index, this.terms, this.ranking, search, found)};
  }
}
