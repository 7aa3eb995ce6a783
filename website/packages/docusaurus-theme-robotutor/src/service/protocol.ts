/**
 * The messages of the service, as `POST /v1/answers` sends them.
 *
 * The names are those of the service's OpenAPI document (`/openapi.json`).
 */

import type {
  readCitation,
  readDone,
  readFigure,
  readNotice,
  readPassage,
  readRefusal,
  readSentence,
  readSource,
} from './events';

/** The version of the protocol that this package understands. */
export const PROTOCOL = 1;

/** What a reader returns for valid input. */
type Read<Reader extends (...values: never[]) => unknown> = NonNullable<ReturnType<Reader>>;

// What the service sends is declared once, by the functions that read it.
export type Citation = Read<typeof readCitation>;
export type Source = Read<typeof readSource>;
export type Sentence = Read<typeof readSentence>;
export type Figure = Read<typeof readFigure>;
export type Passage = Read<typeof readPassage>;
export type Notice = Read<typeof readNotice>;
export type Refusal = Read<typeof readRefusal>;
export type Done = Read<typeof readDone>;

/** Something that the reader can do after a refusal. */
export type Offer = 'answer_anyway' | 'whole_book' | 'drop_filters';

/** The levels of an answer, from a complete answer to none. */
export const LEVELS = ['answered', 'closest_passages', 'not_covered', 'no_question'] as const;

export type Level = (typeof LEVELS)[number];

export type Mode = 'normal' | 'selected_text_only';

/** The filters of a search. A passage must match one value of each list that is given. */
export interface Filters {
  modules?: string[];
  chapters?: string[];
  content_types?: string[];
  tags?: string[];
  doc_paths?: string[];
}

export interface Start {
  protocol: number;
  answer_id: string;
  conversation_id: string;
  mode: Mode;
  search_question: string | null;
  index_id: string;
  model: string | null;
}

/** The last event of an answer that failed. */
export interface Failure {
  code: string;
  message: string;
  transient: boolean;
  retry_after_s: number | null;
}

/** An event of a streamed answer. A stream ends with exactly one `done` or `error`. */
export type AnswerEvent =
  | {event: 'start'; data: Start}
  | {event: 'sources'; data: {confidence: number | null; sources: Source[]}}
  | {event: 'delta'; data: {text: string}}
  | {event: 'refusal'; data: Refusal}
  | {event: 'done'; data: Done}
  | {event: 'error'; data: Failure};

/** An earlier question and its answer, as a request repeats them. */
export interface HistoryTurn {
  question: string;
  answer: string;
  selected_text?: string;
}

/** The body of `POST /v1/answers`. */
export interface AnswerRequest {
  question: string;
  mode: Mode;
  selected_text?: string;
  source_url?: string;
  source_section?: string;
  filters?: Filters;
  conversation_id?: string;
  history?: HistoryTurn[];
  even_if_unrelated?: boolean;
  /** Searches the words as they were typed, without corrections and earlier questions. */
  exact_words?: boolean;
}
