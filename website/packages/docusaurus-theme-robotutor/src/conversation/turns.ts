/** How a question's answer grows with the events of its stream. Nothing here has side effects. */

import {describeFailure} from '../service/problems';
import type {AnswerEvent, Done} from '../service/protocol';
import type {Asked, Problem, Turn, TurnStatus} from './model';

const OPEN: readonly TurnStatus[] = ['searching', 'streaming'];

/** Returns true while an answer is still arriving. */
export const isOpen = (turn: Turn): boolean => OPEN.includes(turn.status);

/** Returns a new question without an answer. */
export const beginTurn = (asked: Asked): Turn => ({
  id: makeId(),
  asked,
  status: 'searching',
  text: '',
  sources: [],
  sentences: [],
  passages: [],
  notices: [],
});

/**
 * Returns the turn after an event of its stream.
 *
 * Events may arrive in any order and more than once. The text is that of all deltas, until `done`
 * names the complete text. A refusal removes the text. After `done`, `error` or the end of the
 * stream, the turn does not change any more.
 */
export function applyEvent(turn: Turn, event: AnswerEvent): Turn {
  if (turn.status === 'refused' && event.event === 'done') {
    return {...turn, ...readResult(turn, event.data), text: '', status: 'refused'};
  }
  if (!isOpen(turn)) {
    return turn;
  }
  switch (event.event) {
    case 'start':
      return {
        ...turn,
        answerId: event.data.answer_id || turn.answerId,
        searchQuestion: event.data.search_question ?? turn.searchQuestion,
        ...(event.data.model ? {model: event.data.model} : {}),
      };
    case 'sources':
      return {...turn, sources: event.data.sources};
    case 'delta':
      return event.data.text
        ? {...turn, status: 'streaming', text: turn.text + event.data.text}
        : turn;
    case 'refusal':
      return {...turn, status: 'refused', text: '', refusal: event.data};
    case 'done':
      return finish(turn, event.data);
    case 'error':
      return failTurn(turn, describeFailure(event.data));
  }
}

/** Returns the turn after its stream ended. Without a last event, the answer was cut off. */
export const endTurn = (turn: Turn): Turn => (isOpen(turn) ? {...turn, status: 'cut_off'} : turn);

/** Returns the turn after the reader stopped it. The text so far stays. */
export const stopTurn = (turn: Turn): Turn => (isOpen(turn) ? {...turn, status: 'stopped'} : turn);

/** Returns the turn after its request failed. The text so far stays. */
export const failTurn = (turn: Turn, problem: Problem): Turn =>
  isOpen(turn) ? {...turn, status: 'failed', problem} : turn;

/**
 * Returns the turn with the passages that were found, for a reader who does not wait for an answer
 * that a model writes.
 */
export const quoteSources = (turn: Turn): Turn =>
  isOpen(turn)
    ? {
        ...turn,
        status: 'done',
        kind: 'extracted',
        level: 'closest_passages',
        text: '',
        model: undefined,
        passages: turn.sources.map((source) => ({
          number: source.number,
          text: source.text,
          doc_path: '',
          start_line: 0,
          end_line: 0,
          citation: source,
          highlights: [],
        })),
      }
    : turn;

function finish(turn: Turn, done: Done): Turn {
  const result = {...turn, ...readResult(turn, done)};
  if (done.kind !== 'refused') {
    const status = done.complete ? 'done' : 'cut_off';
    return {...result, status, text: done.text || turn.text};
  }
  // The event `refusal` is missing, so the text of the answer is all that is known.
  const refusal = {reason: '', message: done.text || turn.text, related: [], offers: []};
  return {...result, status: 'refused', text: '', refusal};
}

function readResult(turn: Turn, done: Done): Partial<Turn> {
  return {
    answerId: done.answer_id || turn.answerId,
    kind: done.kind,
    level: done.level,
    sentences: done.sentences,
    passages: done.passages,
    notices: done.notices,
    model: done.kind === 'generated' ? (done.model ?? undefined) : undefined,
  };
}

// crypto.randomUUID exists only on pages with https or localhost.
const makeId = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('');
