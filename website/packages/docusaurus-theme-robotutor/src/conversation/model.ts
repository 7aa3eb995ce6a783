/** A conversation as the panel shows it and as the browser's session storage keeps it. */

import type {
  Filters,
  Level,
  Notice,
  Offer,
  Passage,
  Refusal,
  Sentence,
  Source,
} from '../service/protocol';
import type {ProblemWords} from '../service/words';

/** Text that the reader selected in an article. */
export interface Selection {
  /** Markdown: formulas as TeX between `$`, code between fences, tables as rows. */
  text: string;
  /** The number of words, for display; 0 if only formulas and blocks of code are selected. */
  words: number;
  /** The path of the page with the anchor of the nearest heading above the selection. */
  url: string;
  /** The text of that heading; empty above the first heading. */
  section: string;
}

/** A question of the reader, with everything that the request needs. */
export interface Asked {
  question: string;
  selection?: Selection;
  filters?: Filters;
  /** The path of the page on which the question was asked. Its version and language are searched. */
  pageUrl?: string;
  evenIfUnrelated?: boolean;
  /** Searches the words as they were typed. */
  exactWords?: boolean;
}

/**
 * - `searching`: nothing has arrived yet.
 * - `streaming`: text is arriving.
 * - `done`: the answer is complete.
 * - `refused`: the book or the selection does not answer the question.
 * - `stopped`: the reader stopped the answer.
 * - `cut_off`: the stream ended early.
 * - `failed`: the service could not be reached, or it reported an error.
 */
export type TurnStatus =
  | 'searching'
  | 'streaming'
  | 'done'
  | 'refused'
  | 'stopped'
  | 'cut_off'
  | 'failed';

/** The reason why a question failed. */
export interface Problem {
  code: string;
  /** Names the sentence for the reader, which depends on the language and on the options. */
  words: ProblemWords;
  /** The seconds after which the question may be asked again, if the service names them. */
  retryAfterS?: number;
}

/** A question and its answer, which may still be arriving. */
export interface Turn {
  /** An id that the browser made. */
  id: string;
  asked: Asked;
  status: TurnStatus;
  answerId?: string;
  /** The words that the service searched for, if they are not the question. */
  searchQuestion?: string;
  kind?: 'generated' | 'extracted' | 'refused' | 'reply';
  level?: Level;
  /** The answer so far, as Markdown with `[1]` for citations. */
  text: string;
  sources: Source[];
  sentences: Sentence[];
  passages: Passage[];
  notices: Notice[];
  refusal?: Refusal;
  problem?: Problem;
  /** The name of the model that writes the answer; missing if the book is quoted. */
  model?: string;
  rating?: 'up' | 'down';
}

/** A place in the book that a reader goes to from an answer. */
export interface JumpTarget {
  /** The path of the page with an anchor. */
  url: string;
  /** The cited text as Markdown, which is highlighted after the jump; empty for only the place. */
  text: string;
  /** The labels of the tabs that contain the text, the outermost first. */
  tabs?: string[];
}

/** The requests of an answer's components to the panel. */
export interface AnswerActions {
  /** Goes to a place. After a jump by keyboard, the place has the focus. */
  onJump: (target: JumpTarget, byKeyboard: boolean) => void;
  onOffer: (turn: Turn, offer: Offer) => void;
  onRetry: (turn: Turn) => void;
  /** Ends the running answer and shows the passages that were found for it. */
  onShowPassages: () => void;
  /** Goes to the site's search; null if the site has none. */
  onSearch: ((question: string) => void) | null;
  /** Asks the exact words instead of the corrected ones. */
  onAsk: (asked: Asked) => void;
}
