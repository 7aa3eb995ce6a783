import {describe, expect, it} from 'vitest';
import type {AnswerEvent, AnswerRequest, Done, Refusal} from '../../src/service/protocol';
import {answer} from '../../src/static/answer';
import {Engine} from '../../src/static/engine';
import {FORMAT, IndexError, readIndex} from '../../src/static/searchIndex';
import {FIGURE, infer, packIndex} from './tinyIndex';

async function ask(question: string, more: Partial<AnswerRequest> = {}): Promise<AnswerEvent[]> {
  const engine = new Engine(await readIndex(packIndex()), infer);
  return answer(engine, {question, mode: 'normal', ...more});
}

interface Data {
  sources: Extract<AnswerEvent, {event: 'sources'}>['data'];
  refusal: Refusal;
  done: Done;
}

function find<Name extends keyof Data>(events: AnswerEvent[], name: Name): Data[Name] {
  const found = events.find(({event}) => event === name);
  if (!found) {
    throw new Error(`no event ${name}`);
  }
  return found.data as Data[Name];
}

describe('an answer from the index', () => {
  it.each([
    ['torque on wheel', 'answered'],
    ['torque from wheel', 'closest_passages'],
    ['torque on invented', 'closest_passages'],
    ['torque on invented wheel', 'closest_passages'],
    ['torque on arms', 'closest_passages'],
    ['torque part 4.2', 'not_covered'],
  ])('answers %s only with a passage about that case', async (question, level) => {
    expect(find(await ask(question), 'done').level).toBe(level);
  });

  it('quotes the best passage without its heading, with marks and a link', async () => {
    const events = await ask('What is torque?');
    const {passages, level, kind, text, sentences} = find(events, 'done');
    expect([kind, level]).toEqual(['extracted', 'answered']);
    expect(passages[0]?.text).toBe('Torque turns a wheel. It is force times arm.');
    expect(passages[0]?.citation.url).toBe('/docs/page-0#torque');
    expect(passages[0]?.highlights).toEqual([[0, 21]]);
    expect(passages[0]?.citation.tabs).toEqual(['Motors']);
    expect(passages[0]?.figures).toEqual([FIGURE]);
    expect(sentences[0]).toEqual({text: 'Torque turns a wheel.', cited: [1]});
    expect(text).toContain('**[Page 0 > Torque](/docs/page-0#torque)** [1]');
    expect(find(events, 'sources').sources.map(({number}) => number)).toEqual([1, 2, 3]);
    expect(events.at(-1)?.event).toBe('done');
  });

  it.each([
    ['Hello!', 'Hello.'],
    ['hello, thanks :)', 'Glad to.'],
  ])('replies to %s without a search', async (question, text) => {
    const events = await ask(question);
    expect(events.map(({event}) => event)).toEqual(['start', 'done']);
    expect(find(events, 'done')).toMatchObject({kind: 'reply', level: 'no_question', text});
  });

  it('finds the parts of a compound question', async () => {
    const {sources} = find(await ask('What is torque and what is a camera?'), 'sources');
    expect(sources.map(({section}) => section)).toContain('Cameras');
  });

  it('searches only the pages that the reader chose', async () => {
    const filters = {doc_paths: ['page-1.md'], modules: ['module-1']};
    const {sources} = find(await ask('What is a wheel?', {filters}), 'sources');
    expect(sources.map(({section}) => section)).toEqual(['Wheels']);
    const none = await ask('What is torque?', {filters: {modules: ['module-9']}});
    expect(find(none, 'refusal').reason).toBe('not_covered');
  });

  it('refuses a question about something else, unless the reader insists', async () => {
    const events = await ask('Zebra?');
    expect(find(events, 'refusal')).toMatchObject({reason: 'not_covered', related: []});
    expect(find(events, 'done').kind).toBe('refused');
    const insisted = await ask('Zebra?', {even_if_unrelated: true});
    expect(find(insisted, 'done').kind).toBe('extracted');
  });

  it('does not claim to answer a question for a person whom no passage names', async () => {
    expect(find(await ask('Who invented torque?'), 'done').level).toBe('closest_passages');
  });

  it('offers the whole book for a question about a selection', async () => {
    const selection = {mode: 'selected_text_only' as const, selected_text: 'Torque'};
    const {reason, offers} = find(await ask('Why?', selection), 'refusal');
    expect(reason).toBe('selection_without_service');
    expect(offers).toEqual(['whole_book']);
  });
});

describe('an index file', () => {
  it('of another version is told from a damaged one', async () => {
    const open = (content: ArrayBuffer): Promise<unknown> =>
      readIndex(content).catch((error: unknown) => (error as IndexError).isOtherVersion);
    expect(await open(packIndex(FORMAT + 1))).toBe(true);
    expect(await open(packIndex().slice(0, 200))).toBe(false);
    expect(await open(new TextEncoder().encode('<!doctype html>').buffer as ArrayBuffer)).toBe(false);
    expect(await open(packIndex(FORMAT, {arrays: {dense: ['int16', 1, 5]}}))).toBe(false);
    expect(await open(new ArrayBuffer(0))).toBe(false);
  });
});
