/** The data of a streamed answer's events, read from JSON. */

import {
  isRecord,
  optional,
  readChoice,
  readList,
  readName,
  readNumber,
  readObject,
  readText,
} from './fields';
import type {Fields} from './fields';
import {LEVELS, type AnswerEvent, type Offer} from './protocol';

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

/** Reads a source, which an answer may cite by its number. `text` is Markdown. */
export const readSource = (value: unknown) =>
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

/** Reads a sentence of an answer, with the numbers of the sources that it cites. */
export const readSentence = (value: unknown) =>
  readObject(value, (fields) => ({
    text: readText(fields.text),
    cited: readList(fields.cited, readNumber),
  }));

/**
 * Reads a quotation from the book; null without a number.
 *
 * `highlights` are pairs of start and end offsets in `text`. Those outside of it are left out.
 */
export const readPassage = (value: unknown) =>
  readObject(value, (fields) => {
    const number = readNumber(fields.number);
    const text = readText(fields.text);
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
          ...optional('figures', readSome(fields.figures, readFigure)),
        };
  });

/**
 * Reads an image or a diagram of a passage.
 *
 * `address` is the path of an image on the site, or a path after `@site/` of a file that the build
 * renames. `text` has the words for readers who do not see the image, or the source of a diagram.
 */
export const readFigure = (value: unknown) =>
  readObject(value, (fields) => ({
    kind: readText(fields.kind),
    address: readText(fields.address),
    text: readText(fields.text),
    caption: readText(fields.caption),
  }));

/** Reads a hint for the reader; null without a text. */
export const readNotice = (value: unknown) =>
  readObject(value, (fields) => {
    const text = readText(fields.text);
    return text ? {code: readText(fields.code), text} : null;
  });

/** Reads a refusal. Offers that this version does not know are left out. */
export const readRefusal = (fields: Fields) => ({
  reason: readText(fields.reason),
  message: readText(fields.message),
  related: readList(fields.related, (entry) => readObject(entry, readCitation)),
  offers: readList(fields.offers, (entry) => readChoice(entry, OFFERS, null)),
});

/**
 * Reads a section of the book.
 *
 * `url` is a path within the site with an anchor; empty if unknown. `version` and `locale` are set
 * if they are not the latest and the default one. `tabs` are the labels of the tabs to open on the
 * page, the outermost first.
 */
export const readCitation = (fields: Fields) => ({
  title: readText(fields.title),
  section: readText(fields.section),
  url: readText(fields.url),
  module: readText(fields.module),
  chapter: readText(fields.chapter),
  ...optional('version', readName(fields.version)),
  ...optional('locale', readName(fields.locale)),
  ...optional('tabs', readSome(fields.tabs, readName)),
});

/** Reads the last event of an answer that did not fail. */
export const readDone = (fields: Fields) => ({
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

/** Returns a list, or null if it is empty. */
function readSome<T>(value: unknown, read: (entry: unknown) => T | null): T[] | null {
  const entries = readList(value, read);
  return entries.length > 0 ? entries : null;
}

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
