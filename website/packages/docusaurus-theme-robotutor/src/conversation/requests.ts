/** The request for a question, with the earlier turns that count for it. */

import type {AnswerRequest, HistoryTurn} from '../service/protocol';
import type {Asked, Selection, Turn} from './model';

/** Characters of a question that the service accepts. */
export const MAX_QUESTION_CHARS = 2_000;

/** Characters of a selection that the service accepts. */
export const MAX_SELECTION_CHARS = 20_000;
const MAX_PLACE_CHARS = 2_000;

/** The number of earlier turns that the service accepts. */
const MAX_HISTORY_TURNS = 20;

/** Characters of an earlier answer. The service accepts more, but reads no more. */
const MAX_HISTORY_ANSWER_CHARS = 8_000;

/** Bytes of all earlier turns, because the service reads at most 256 KiB of a request. */
export const MAX_HISTORY_BYTES = 96 * 1024;

// The service refuses a request with another id.
const ID = /^[A-Za-z0-9_-]{1,64}$/;

/**
 * Returns the request for a question.
 *
 * The history is always sent, because the service remembers no conversation.
 *
 * @param earlier The turns above the question, oldest first.
 * @param conversationId The id that the service gave to the conversation, if it did.
 */
export function makeRequest(
  asked: Asked,
  earlier: readonly Turn[],
  conversationId?: string,
): AnswerRequest {
  return {
    question: asked.question,
    ...(asked.selection ? describeSelection(asked.selection) : describeScope(asked)),
    ...(ID.test(conversationId ?? '') ? {conversation_id: conversationId} : {}),
    ...(asked.evenIfUnrelated ? {even_if_unrelated: true} : {}),
    ...(asked.exactWords ? {exact_words: true} : {}),
    history: chooseHistory(asked.selection, earlier),
  };
}

/**
 * Returns the latest turns that count for a question, oldest first.
 *
 * For a question about a selection, only turns about the same selection count. Otherwise every
 * answered turn counts, but of a turn about a selection only the question.
 */
function chooseHistory(
  selection: Selection | undefined,
  earlier: readonly Turn[],
): HistoryTurn[] {
  const chosen: HistoryTurn[] = [];
  let left = MAX_HISTORY_BYTES;
  for (const turn of earlier.filter(wasAnswered).reverse()) {
    const entry = selection ? describeSame(turn, selection) : describeTurn(turn);
    if (!entry) {
      continue;
    }
    left -= countBytes(JSON.stringify(entry));
    if (left < 0 || chosen.length === MAX_HISTORY_TURNS) {
      break;
    }
    chosen.push(entry);
  }
  return chosen.reverse();
}

/** Returns true if the service began to answer, so that a later question may refer to it. */
const wasAnswered = (turn: Turn): boolean => turn.answerId !== undefined;

const describeTurn = (turn: Turn): HistoryTurn => ({
  question: turn.asked.question,
  answer: turn.asked.selection ? '' : cut(readAnswer(turn), MAX_HISTORY_ANSWER_CHARS),
});

function describeSame(turn: Turn, selection: Selection): HistoryTurn | null {
  const text = turn.asked.selection?.text;
  return text !== undefined && normalize(text) === normalize(selection.text)
    ? {
        question: turn.asked.question,
        answer: cut(readAnswer(turn), MAX_HISTORY_ANSWER_CHARS),
        selected_text: text,
      }
    : null;
}

const readAnswer = (turn: Turn): string => turn.text || (turn.refusal?.message ?? '');

const describeSelection = ({text, url, section}: Selection): Partial<AnswerRequest> & {
  mode: 'selected_text_only';
} => ({
  mode: 'selected_text_only',
  selected_text: text,
  ...(url && url.length <= MAX_PLACE_CHARS ? {source_url: url} : {}),
  ...(section ? {source_section: cut(section, MAX_PLACE_CHARS)} : {}),
});

const describeScope = ({filters, pageUrl}: Asked): Partial<AnswerRequest> & {mode: 'normal'} => ({
  mode: 'normal',
  ...(filters ? {filters} : {}),
  ...(pageUrl && pageUrl.length <= MAX_PLACE_CHARS ? {source_url: pageUrl} : {}),
});

/** Returns the start of a text, without half a character at its end. */
const cut = (text: string, length: number): string =>
  text.length <= length ? text : text.slice(0, length).replace(/[\uD800-\uDBFF]$/, '');

// The service compares selections in the same way.
const normalize = (text: string): string =>
  text.replaceAll('\0', '').normalize('NFC').split(/\s+/).filter(Boolean).join(' ');

const countBytes = (text: string): number => new TextEncoder().encode(text).length;
