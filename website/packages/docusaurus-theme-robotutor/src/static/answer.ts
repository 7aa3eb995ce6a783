/** Answers of the static mode: passages of the book, as the events that the service sends. */

import {
  PROTOCOL,
  type AnswerEvent,
  type AnswerRequest,
  type Citation,
  type Done,
  type Filters,
  type Offer,
  type Passage,
  type Source,
} from '../service/protocol';
import type {Engine, Result} from './engine';
import {readNearness} from './grounding';
import {findReply} from './questions';
import {sum} from './ranking';
import type {IndexedPassage} from './searchIndex';

/** Passages that an answer quotes. The others are only listed as sources. */
const MAX_QUOTED = 3;

/** The score of a quoted passage is at least this share of the first one's. */
const QUOTED_SHARE = 0.8;

/** Sentences of a passage that are marked. */
const MAX_MARKED = 3;

/** A sentence is marked if its terms weigh at least this share of the best sentence's. */
const MARKED_SHARE = 0.6;

/** Returns the events of an answer, in the order in which the service would send them. */
export async function answer(engine: Engine, request: AnswerRequest): Promise<AnswerEvent[]> {
  const {index} = engine;
  const start: AnswerEvent = {
    event: 'start',
    data: {
      protocol: PROTOCOL,
      answer_id: '',
      conversation_id: '',
      mode: request.mode,
      search_question: null,
      index_id: index.index_id,
      model: null,
    },
  };
  if (request.mode === 'selected_text_only') {
    return [start, ...refuse('selection_without_service', [], ['whole_book'])];
  }
  const reply = findReply(request.question, index);
  if (reply !== null) {
    return [start, {event: 'done', data: {...EMPTY, kind: 'reply', level: 'no_question', text: reply}}];
  }
  const result = await engine.search(request.question, (one) => isAllowed(one, request.filters));
  const {level, confidence} = result.grounding;
  const isRefused = level === 'not_covered' && !request.even_if_unrelated;
  if (result.hits.length === 0 || isRefused) {
    const related = result.hits
      .filter((hit) => readNearness(hit) >= index.rules.related_from)
      .map(({at}) => cite(index.passages[at]!));
    const distinct = related.filter(
      ({url}, at) => related.findIndex((other) => other.url === url) === at,
    );
    return [start, ...refuse('not_covered', distinct.slice(0, index.rules.related_sections))];
  }
  const sources = result.hits.map(({at}, row) => makeSource(index.passages[at]!, row + 1));
  const passages = quote(engine, result);
  const text = passages.map(writePassage).join('\n\n');
  const done: Done = {
    ...EMPTY,
    kind: 'extracted',
    level: level === 'answered' ? 'answered' : 'closest_passages',
    text,
    passages,
    sentences: passages.flatMap(({text: quoted, number, highlights}) =>
      highlights.map(([from, to]) => ({text: quoted.slice(from, to), cited: [number]})),
    ),
  };
  return [
    start,
    {event: 'sources', data: {confidence, sources}},
    {event: 'done', data: done},
  ];
}

const EMPTY: Done = {
  answer_id: '',
  kind: 'refused',
  level: 'not_covered',
  text: '',
  sentences: [],
  passages: [],
  notices: [],
  model: null,
  complete: true,
  timings_ms: {},
};

const refuse = (reason: string, related: Citation[], offers: Offer[] = []): AnswerEvent[] => [
  {event: 'refusal', data: {reason, message: '', related, offers}},
  {event: 'done', data: EMPTY},
];

function isAllowed(passage: IndexedPassage, filters: Filters = {}): boolean {
  const fits = (wanted: string[] | undefined, value: string): boolean =>
    !wanted || wanted.length === 0 || wanted.includes(value);
  return (
    fits(filters.modules, passage.module) &&
    fits(filters.chapters, passage.chapter) &&
    fits(filters.content_types, passage.content_type) &&
    fits(filters.doc_paths, passage.doc_path)
  );
}

function cite(passage: IndexedPassage): Citation {
  const {title, section, url, module, chapter, version, locale, tabs} = passage;
  return {
    title,
    section,
    url,
    module,
    chapter,
    ...(version ? {version} : {}),
    ...(locale ? {locale} : {}),
    ...(tabs ? {tabs} : {}),
  };
}

const makeSource = (passage: IndexedPassage, number: number): Source => ({
  ...cite(passage),
  number,
  chunk_id: passage.chunk_id,
  content_type: passage.content_type,
  text: passage.text,
});

/** Returns the best passages without their headings, with the sentences that fit the question. */
function quote({index, terms}: Engine, {hits, weights}: Result): Passage[] {
  const least = QUOTED_SHARE * Math.max(0, hits[0]?.score ?? 0);
  return hits
    .map((hit, row) => ({hit, number: row + 1}))
    .filter(({hit, number}) => number === 1 || hit.score >= least)
    .slice(0, MAX_QUOTED)
    .map(({hit, number}) => {
      const passage = index.passages[hit.at]!;
      const start = findBody(passage);
      const spans = passage.sentences.filter(([from]) => from >= start);
      const rated = spans.map(([from, to]) => {
        const found = new Set(terms.readTerms(passage.text.slice(from, to)));
        return sum([...weights].filter(([term]) => found.has(term)).map(([, weight]) => weight));
      });
      const bar = MARKED_SHARE * Math.max(0, ...rated);
      const marked = spans.filter((_, at) => rated[at]! > 0 && rated[at]! >= bar);
      return {
        number,
        text: passage.text.slice(start),
        doc_path: passage.doc_path,
        start_line: passage.lines[0],
        end_line: passage.lines[1],
        citation: cite(passage),
        figures: passage.figures,
        highlights: marked
          .slice(0, MAX_MARKED)
          .map(([from, to]): [number, number] => [from - start, to - start]),
      };
    });
}

/** Returns where the text of a passage begins after its headings; 0 if it has no other text. */
function findBody({blocks}: IndexedPassage): number {
  const first = blocks.find(([kind]) => kind !== 'heading');
  return first ? first[1] : 0;
}

function writePassage({number, text, citation}: Passage): string {
  const place = [...new Set([citation.title, citation.section])].filter(Boolean).join(' > ');
  const label = place.replace(/[\\[\]]/g, '\\$&');
  return `**[${label}](${citation.url})** [${number}]\n\n${text}`;
}
