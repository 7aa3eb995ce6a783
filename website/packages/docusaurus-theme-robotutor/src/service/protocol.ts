/**
 * The messages of the service, as `POST /v1/answers` sends them.
 *
 * The names are those of the service's OpenAPI document (`/openapi.json`).
 */

/** The version of the protocol that this package understands. */
export const PROTOCOL = 1;

/** A section of the book. `url` is a path within the site with an anchor; empty if unknown. */
export interface Citation {
  title: string;
  section: string;
  url: string;
  module: string;
  chapter: string;
  /** The version of the docs, if it is not the latest. */
  version?: string;
  /** The language, if it is not the default one. */
  locale?: string;
  /** The labels of the tabs to open on the page, the outermost first. */
  tabs?: string[];
}

/** A section that an answer may cite by its number. `text` is Markdown. */
export interface Source extends Citation {
  number: number;
  chunk_id: string;
  content_type: string;
  text: string;
}

/** A sentence of an answer, with the numbers of the sources that it cites. */
export interface Sentence {
  text: string;
  cited: number[];
}

/** An image or a diagram of a passage. */
export interface Figure {
  kind: string;
  /** The path of an image on the site, or a path after `@site/` of a file that the build renames. */
  address: string;
  /** The words for readers who do not see the image, or the source of a diagram. */
  text: string;
  caption: string;
}

/** A quotation from the book. `highlights` are pairs of start and end offsets in `text`. */
export interface Passage {
  number: number;
  text: string;
  doc_path: string;
  start_line: number;
  end_line: number;
  citation: Citation;
  highlights: [number, number][];
  figures?: Figure[];
}

/** A hint for the reader. */
export interface Notice {
  code: string;
  text: string;
}

/** Something that the reader can do after a refusal. */
export type Offer = 'answer_anyway' | 'whole_book' | 'drop_filters';

export interface Refusal {
  reason: string;
  message: string;
  related: Citation[];
  offers: Offer[];
}

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

export interface Done {
  answer_id: string;
  kind: 'generated' | 'extracted' | 'refused' | 'reply';
  level: Level;
  text: string;
  sentences: Sentence[];
  passages: Passage[];
  notices: Notice[];
  model: string | null;
  complete: boolean;
  timings_ms: Record<string, number>;
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
