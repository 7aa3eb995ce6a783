/** Turns for tests of answers, some of them from answers that the service gave. */

import {readdirSync, readFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import type {AnswerActions, Turn} from '../../src/conversation/model';
import type {Done, Refusal, Source} from '../../src/service/protocol';

interface Recorded {
  request: {question: string; selected_text?: string; source_url?: string};
  answer: Done & {sources: Source[]; refusal: Refusal | null; search_question: string | null};
}

const ANSWERS = join(dirname(fileURLToPath(import.meta.url)), 'answers');

/** The names of all recorded answers. */
export const recordedNames = readdirSync(ANSWERS).map((file) => file.replace(/\.json$/, ''));

/** Returns a turn with an answer that the service gave. */
export function readTurn(name: string): Turn {
  const {answer, request} = JSON.parse(readFileSync(join(ANSWERS, `${name}.json`), 'utf8')) as Recorded;
  const {refusal, search_question: searchQuestion, model, ...rest} = answer;
  return makeTurn({
    ...rest,
    status: refusal ? 'refused' : 'done',
    asked: {
      question: request.question,
      selection: request.selected_text
        ? {text: request.selected_text, words: 20, url: request.source_url ?? '', section: ''}
        : undefined,
    },
    refusal: refusal ?? undefined,
    searchQuestion: searchQuestion ?? undefined,
    model: model ?? undefined,
  });
}

/** Returns a finished turn without sources. */
export function makeTurn(changes: Partial<Turn> = {}): Turn {
  return {
    id: 'turn',
    asked: {question: 'Why does a robot fall?'},
    status: 'done',
    text: '',
    sources: [],
    sentences: [],
    passages: [],
    notices: [],
    ...changes,
  };
}

/** Returns a source of the book. */
export function makeSource(changes: Partial<Source> = {}): Source {
  return {
    number: 1,
    chunk_id: 'chunk',
    content_type: 'prose',
    title: 'Balance',
    section: 'Falling',
    url: '/book/docs/balance#falling',
    module: '',
    chapter: '',
    text: '## Falling\n\nA robot falls if its zero moment point leaves the foot.',
    ...changes,
  };
}

/** Returns actions that do nothing, except those given. */
export function makeActions(changes: Partial<AnswerActions> = {}): AnswerActions {
  const nothing = (): void => undefined;
  return {
    onJump: nothing,
    onOffer: nothing,
    onRetry: nothing,
    onAsk: nothing,
    onShowPassages: nothing,
    onSearch: null,
    ...changes,
  };
}
