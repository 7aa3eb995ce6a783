/** The messages between the page and the worker that searches. */

import type {AnswerEvent, AnswerRequest} from '../service/protocol';

/** Why a search failed: the index is another version or missing, or the browser forbids it. */
export type SearchProblem = 'version' | 'missing' | 'blocked' | 'failed';

export interface SearchMessage {
  id: number;
  request: AnswerRequest;
}

export type SearchReply =
  | {id: number; events: AnswerEvent[]}
  | {id: number; problem: SearchProblem};
