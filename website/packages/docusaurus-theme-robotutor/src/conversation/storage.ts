/**
 * The conversation in the browser's session storage, so that it survives a reload.
 *
 * Session storage belongs to one tab, so that two tabs do not disturb each other. If it is blocked
 * or full, the conversation stays in memory only.
 */

import {
  KINDS,
  readNotice,
  readPassage,
  readRefusal,
  readSentence,
  readSource,
} from '../service/events';
import {
  isRecord,
  optional,
  readChoice,
  readList,
  readName,
  readNumber,
  readObject,
  readText,
} from '../service/fields';
import type {Fields} from '../service/fields';
import {LEVELS, type Filters} from '../service/protocol';
import {PROBLEM_WORDS} from '../service/words';
import {CONVERSATION_KEY, readJson, writeItem} from '../storage';
import type {Asked, Problem, Selection, Turn, TurnStatus} from './model';
import {endTurn} from './turns';

/** The part of a conversation that is kept. */
interface Saved {
  turns: Turn[];
  /** The id that the service gave to the conversation. */
  conversationId?: string;
}

/** The version of the format. Content of another version is ignored. */
export const STORAGE_VERSION = 1;

/** The most characters that are stored. Browsers allow about 5 million for all keys of a site. */
export const MAX_STORED_CHARS = 250_000;

const STATUSES: readonly TurnStatus[] = [
  'searching',
  'streaming',
  'done',
  'refused',
  'stopped',
  'cut_off',
  'failed',
];
const FILTERS = ['modules', 'chapters', 'content_types', 'tags', 'doc_paths'] as const;

/**
 * Returns the stored conversation; an empty one if nothing usable is stored.
 *
 * A turn whose answer was still arriving becomes `cut_off`.
 */
export function loadConversation(storage: Storage | null): Saved {
  const value = readJson(storage, CONVERSATION_KEY);
  if (!isRecord(value) || value.version !== STORAGE_VERSION) {
    return {turns: []};
  }
  const ids = new Set<string>();
  const turns = readList(value.turns, readTurn).filter(
    ({id}) => !ids.has(id) && Boolean(ids.add(id)),
  );
  return {turns, ...optional('conversationId', readName(value.conversationId))};
}

/**
 * Stores a conversation; an empty one removes what is stored. It never throws.
 *
 * The oldest turns are dropped if the conversation is too large.
 */
export function saveConversation(storage: Storage | null, saved: Saved): void {
  writeItem(storage, CONVERSATION_KEY, saved.turns.length === 0 ? null : encode(saved));
}

function encode({turns, conversationId}: Saved): string {
  const kept: string[] = [];
  let left = MAX_STORED_CHARS;
  for (const turn of [...turns].reverse()) {
    const text = JSON.stringify(turn);
    left -= text.length;
    if (left < 0) {
      break;
    }
    kept.unshift(text);
  }
  const id = conversationId ? `"conversationId":${JSON.stringify(conversationId)},` : '';
  return `{"version":${STORAGE_VERSION},${id}"turns":[${kept.join(',')}]}`;
}

const readTurn = (value: unknown): Turn | null =>
  readObject(value, (fields) => {
    const asked = readAsked(fields.asked);
    const id = readName(fields.id);
    const status = readChoice(fields.status, STATUSES, null);
    if (!asked || !id || !status) {
      return null;
    }
    const refusal = isRecord(fields.refusal) ? readRefusal(fields.refusal) : null;
    return endTurn({
      id,
      asked,
      status: status === 'refused' && !refusal ? 'cut_off' : status,
      text: readText(fields.text),
      sources: readList(fields.sources, readSource),
      sentences: readList(fields.sentences, readSentence),
      passages: readList(fields.passages, readPassage),
      notices: readList(fields.notices, readNotice),
      ...optional('answerId', readName(fields.answerId)),
      ...optional('searchQuestion', readName(fields.searchQuestion)),
      ...optional('kind', readChoice(fields.kind, KINDS, null)),
      ...optional('level', readChoice(fields.level, LEVELS, null)),
      ...optional('refusal', refusal),
      ...optional('problem', readObject(fields.problem, readProblem)),
      ...optional('model', readName(fields.model)),
      ...optional('rating', readChoice(fields.rating, ['up', 'down'] as const, null)),
    });
  });

const readAsked = (value: unknown): Asked | null =>
  readObject(value, (fields) => {
    const question = readName(fields.question);
    const filters = readObject(fields.filters, readFilters);
    return question
      ? {
          question,
          ...optional('selection', readObject(fields.selection, readSelection)),
          ...optional('filters', filters && Object.keys(filters).length > 0 ? filters : null),
          ...optional('pageUrl', readName(fields.pageUrl)),
          ...(fields.evenIfUnrelated === true ? {evenIfUnrelated: true} : {}),
          ...(fields.exactWords === true ? {exactWords: true} : {}),
        }
      : null;
  });

function readSelection(fields: Fields): Selection | null {
  const text = readName(fields.text);
  const words = readNumber(fields.words) ?? 0;
  return text
    ? {text, words, url: readText(fields.url), section: readText(fields.section)}
    : null;
}

function readFilters(fields: Fields): Filters {
  const lists = FILTERS.map((name) => [name, readList(fields[name], readName)] as const);
  return Object.fromEntries(lists.filter(([, values]) => values.length > 0));
}

const readProblem = (fields: Fields): Problem => ({
  code: readText(fields.code),
  words: readChoice(fields.words, PROBLEM_WORDS, 'failed'),
});
