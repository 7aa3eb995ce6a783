/** The data of a streamed answer's events, read from JSON. */

import {isRecord, readChoice, readList, readName, readNumber, readObject, readText} from './fields';
import type {Fields} from './fields';
import {
  LEVELS,
  type AnswerEvent,
  type Citation,
  type Done,
  type Figure,
  type Notice,
  type Offer,
  type Passage,
  type Refusal,
  type Sentence,
  type Source,
} from './protocol';

const OFFERS: readonly Offer[] = ['answer_anyway', 'whole_book', 'drop_filters'];

/** The kinds of answers. */
export const KINDS = ['generated', 'extracted', 'refused', 'reply'] as const;

/** Returns an event, or null if this version does not know its name. It never throws. */
export function readEvent(name: string | undefined, json: string): AnswerEvent | null {
  const data = parse(json);
  switch (name) {
    case 'start':
      return {
        event: 'start',
        data: {
          protocol: readNumber(data.protocol) ?? 0,
          answer_id: readText(data.answer_id),
          conversation_id: readText(data.conversation_id),
          mode: readChoice(data.mode, ['selected_text_only'] as const, 'normal'),
          search_question: readName(data.search_question),
          index_id: readText(data.index_id),
          model: readName(data.model),
        },
      };
    case 'sources':
      return {
        event: 'sources',
        data: {
          confidence: readNumber(data.confidence),
          sources: readList(data.sources, readSource),
        },
      };
    case 'delta':
      return {event: 'delta', data: {text: readText(data.text)}};
    case 'refusal':
      return {event: 'refusal', data: readRefusal(data)};
    case 'done':
      return {event: 'done', data: readDone(data)};
    case 'error':
      return {
        event: 'error',
        data: {
          code: readText(data.code) || 'UNKNOWN',
          message: readText(data.message),
          transient: data.transient === true,
          retry_after_s: readNumber(data.retry_after_s),
        },
      };
    default:
      return null;
  }
}

/** Returns a source, or null if it has no number to cite it by. */
export const readSource = (value: unknown): Source | null =>
  readObject(value, (fields) => {
    const number = readNumber(fields.number);
    return number === null
      ? null
      : {
          ...readCitation(fields),
          number,
          chunk_id: readText(fields.chunk_id),
          content_type: readText(fields.content_type),
          text: readText(fields.text),
        };
  });

/** Returns a sentence, or null if it is not an object. */
export const readSentence = (value: unknown): Sentence | null =>
  readObject(value, (fields) => ({
    text: readText(fields.text),
    cited: readList(fields.cited, readNumber),
  }));

/** Returns a passage, or null if it has no number. Highlights outside its text are left out. */
export const readPassage = (value: unknown): Passage | null =>
  readObject(value, (fields) => {
    const number = readNumber(fields.number);
    const text = readText(fields.text);
    const figures = readList(fields.figures, readFigure);
    return number === null
      ? null
      : {
          number,
          text,
          doc_path: readText(fields.doc_path),
          start_line: readNumber(fields.start_line) ?? 0,
          end_line: readNumber(fields.end_line) ?? 0,
          citation: readCitation(isRecord(fields.citation) ? fields.citation : {}),
          highlights: readList(fields.highlights, (pair) => readRange(pair, text.length)),
          ...(figures.length > 0 ? {figures} : {}),
        };
  });

const readFigure = (value: unknown): Figure | null =>
  readObject(value, (fields) => ({
    kind: readText(fields.kind),
    address: readText(fields.address),
    text: readText(fields.text),
    caption: readText(fields.caption),
  }));

/** Returns a notice, or null if it has no text. */
export const readNotice = (value: unknown): Notice | null =>
  readObject(value, (fields) => {
    const text = readText(fields.text);
    return text ? {code: readText(fields.code), text} : null;
  });

/** Returns a refusal. Offers that this version does not know are left out. */
export const readRefusal = (fields: Fields): Refusal => ({
  reason: readText(fields.reason),
  message: readText(fields.message),
  related: readList(fields.related, (entry) => readObject(entry, readCitation)),
  offers: readList(fields.offers, (entry) => readChoice(entry, OFFERS, null)),
});

/** Returns a place in the book. */
export const readCitation = (fields: Fields): Citation => ({
  title: readText(fields.title),
  section: readText(fields.section),
  url: readText(fields.url),
  module: readText(fields.module),
  chapter: readText(fields.chapter),
  ...(readName(fields.version) ? {version: readText(fields.version)} : {}),
  ...(readName(fields.locale) ? {locale: readText(fields.locale)} : {}),
  ...readTabs(fields.tabs),
});

function readTabs(value: unknown): {tabs?: string[]} {
  const tabs = readList(value, readName);
  return tabs.length > 0 ? {tabs} : {};
}

const readDone = (fields: Fields): Done => ({
  answer_id: readText(fields.answer_id),
  kind: readChoice(fields.kind, KINDS, 'generated'),
  level: readChoice(fields.level, LEVELS, 'answered'),
  text: readText(fields.text),
  sentences: readList(fields.sentences, readSentence),
  passages: readList(fields.passages, readPassage),
  notices: readList(fields.notices, readNotice),
  model: readName(fields.model),
  complete: fields.complete !== false,
  timings_ms: readTimings(fields.timings_ms),
});

function readTimings(value: unknown): Record<string, number> {
  const entries = isRecord(value) ? Object.entries(value) : [];
  return Object.fromEntries(entries.filter((entry): entry is [string, number] =>
    readNumber(entry[1]) !== null));
}

function readRange(value: unknown, length: number): [number, number] | null {
  const [start, end] = readList(value, readNumber);
  const isRange = start !== undefined && end !== undefined && start >= 0 && end <= length;
  return isRange && start < end ? [start, end] : null;
}

function parse(json: string): Fields {
  try {
    const value: unknown = JSON.parse(json);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}
