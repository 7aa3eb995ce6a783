// @vitest-environment jsdom
import {afterEach, beforeEach, describe, expect, it, vi} from 'vitest';
import {loadConversation} from '../../src/conversation/storage';
import {ConversationStore} from '../../src/conversation/store';
import {CONVERSATION_KEY} from '../../src/storage';
import {
  DONE,
  LiveResponse,
  START,
  encodeAnswer,
  encodeEvent,
  respond,
  respondProblem,
} from '../service/streams';

/** A slow machine needs more than the usual second. */
const PATIENT = {timeout: 30_000};

const SETTINGS = {serviceUrl: 'https://tutor.test'};
const storage = window.sessionStorage;

/** Requests that the store sent, and the responses that it gets, in this order. */
let sent: Record<string, unknown>[];
let responses: (Response | Error)[];

beforeEach(() => {
  storage.clear();
  sent = [];
  responses = [];
  vi.stubGlobal('fetch', async (_: string, options: RequestInit) => {
    sent.push(options.body ? JSON.parse(String(options.body)) : {});
    const response = responses.shift() ?? new TypeError('no response is left');
    if (response instanceof Error) {
      throw response;
    }
    return response;
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const open = (): ConversationStore => new ConversationStore(SETTINGS, storage);
const texts = (store: ConversationStore): string[] => store.read().turns.map(({text}) => text);
const statuses = (store: ConversationStore): string[] =>
  store.read().turns.map(({status}) => status);
const rest = (store: ConversationStore): Promise<void> =>
  vi.waitFor(() => expect(store.read().busy).toBe(false), PATIENT);

async function askAndWait(store: ConversationStore, question: string): Promise<void> {
  store.ask({question});
  await rest(store);
}

/** A store with a running answer, of which some text has arrived. */
async function openRunning(text = 'A rob'): Promise<[ConversationStore, LiveResponse]> {
  const live = new LiveResponse();
  responses = [live.response];
  const store = open();
  store.ask({question: 'What is a robot?'});
  live.send(encodeEvent('start', START) + encodeEvent('delta', {text}));
  await vi.waitFor(() => expect(texts(store).at(-1)).toBe(text), PATIENT);
  return [store, live];
}

describe('asking', () => {
  it('adds a turn that grows to a complete answer', async () => {
    const [store, live] = await openRunning();
    expect(store.read()).toMatchObject({busy: true, serviceDown: false, waitS: 0});
    live.send(encodeEvent('done', {...DONE, text: 'A robot.'}));
    await rest(store);
    expect(statuses(store)).toEqual(['done']);
    expect(texts(store)).toEqual(['A robot.']);
  });

  it('is ignored while an answer arrives, and for a blank question', async () => {
    const [store, live] = await openRunning();
    store.ask({question: 'Twice?'});
    expect(store.read().turns).toHaveLength(1);
    live.send(encodeEvent('done', DONE));
    await rest(store);
    store.ask({question: ' \n'});
    expect(sent).toHaveLength(1);
  });

  it('repeats the conversation and its turns', async () => {
    responses = [respond([encodeAnswer('Yes.')]), respond([encodeAnswer('So.')])];
    const store = open();
    await askAndWait(store, 'One?');
    await askAndWait(store, 'And why?');
    expect(sent).toEqual([
      {question: 'One?', mode: 'normal', history: []},
      {
        question: 'And why?',
        mode: 'normal',
        conversation_id: 'c1',
        history: [{question: 'One?', answer: 'Yes.'}],
      },
    ]);
  });

  it('tells its listeners about each change, with a new object', async () => {
    const store = open();
    const seen = new Set<unknown>([store.read()]);
    let changes = 0;
    const leave = store.subscribe(() => {
      changes += 1;
      seen.add(store.read());
    });
    responses = [respond([encodeAnswer('Yes.')]), respond([encodeAnswer('Yes.')])];
    await askAndWait(store, 'One?');
    expect(changes).toBeGreaterThan(3);
    expect(seen.size).toBe(changes + 1);
    leave();
    await askAndWait(store, 'Two?');
    expect(seen.size).toBe(changes + 1);
  });
});

describe('stopping', () => {
  it('keeps the text, and late text is ignored', async () => {
    const [store, live] = await openRunning();
    store.stop();
    expect(store.read()).toMatchObject({busy: false, serviceDown: false});
    live.send(encodeEvent('delta', {text: 'late'}) + encodeEvent('done', DONE));
    await vi.waitFor(() => expect(live.isCancelled).toBe(true), PATIENT);
    expect(texts(store)).toEqual(['A rob']);
    expect(statuses(store)).toEqual(['stopped']);
    store.stop();
    expect(statuses(store)).toEqual(['stopped']);
  });

  it('and asking again at once never mixes two streams', async () => {
    const [store, first] = await openRunning('old');
    const second = new LiveResponse();
    responses = [second.response];
    store.stop();
    store.retry(store.read().turns[0]!);
    first.send(encodeEvent('delta', {text: ' old'}) + encodeEvent('done', {...DONE, text: 'old'}));
    second.send(encodeEvent('start', START) + encodeEvent('delta', {text: 'new'}));
    await vi.waitFor(() => expect(texts(store)).toEqual(['new']), PATIENT);
    expect(store.read().busy).toBe(true);
    second.send(encodeEvent('done', {...DONE, text: 'new.'}));
    await rest(store);
    expect(texts(store)).toEqual(['new.']);
  });
});

describe('trying again', () => {
  it('replaces a turn in its place and repeats only the turns above it', async () => {
    responses = ['One.', 'Two.', 'Three.', 'Second.'].map((text) => respond([encodeAnswer(text)]));
    const store = open();
    for (const question of ['1?', '2?', '3?']) {
      await askAndWait(store, question);
    }
    const [, second] = store.read().turns;
    store.retry(second!);
    store.retry(second!);
    await rest(store);
    expect(texts(store)).toEqual(['One.', 'Second.', 'Three.']);
    expect(sent).toHaveLength(4);
    expect(sent[3]).toMatchObject({question: '2?', history: [{question: '1?', answer: 'One.'}]});
    store.retry(second!); // it is gone
    expect(store.read().busy).toBe(false);
  });
});

describe('problems', () => {
  it('a stream that breaks is cut off and keeps its text', async () => {
    const [store, live] = await openRunning();
    live.break();
    await rest(store);
    expect(statuses(store)).toEqual(['cut_off']);
    expect(texts(store)).toEqual(['A rob']);
    expect(store.read().serviceDown).toBe(false);
  });

  it('too many questions make the reader wait', async () => {
    vi.useFakeTimers();
    responses = [
      respondProblem(429, 'RATE_LIMITED', {headers: {'retry-after': '3'}}),
      respond([encodeAnswer('Yes.')]),
    ];
    const store = open();
    store.ask({question: 'One?'});
    await vi.advanceTimersByTimeAsync(0);
    expect(store.read()).toMatchObject({busy: false, waitS: 3});
    expect(statuses(store)).toEqual(['failed']);
    store.ask({question: 'Two?'});
    store.retry(store.read().turns[0]!);
    expect(sent).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1_100);
    expect(store.read().waitS).toBe(2);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(store.read().waitS).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
    store.retry(store.read().turns[0]!);
    await vi.advanceTimersByTimeAsync(0);
    expect(texts(store)).toEqual(['Yes.']);
  });

  it('a service that is down is up again with the next answer', async () => {
    responses = [new TypeError('Failed to fetch'), respond([encodeAnswer('Yes.')])];
    const store = open();
    await askAndWait(store, 'One?');
    expect(store.read().serviceDown).toBe(true);
    expect(store.read().turns[0]?.problem?.words).toBe('down');
    await askAndWait(store, 'Two?');
    expect(store.read().serviceDown).toBe(false);
  });

  it('a problem that the service reports shows that it is up', async () => {
    responses = [new TypeError('Failed to fetch'), respondProblem(500, 'INTERNAL_ERROR')];
    const store = open();
    await askAndWait(store, 'One?');
    await askAndWait(store, 'Two?');
    expect(store.read().serviceDown).toBe(false);
  });

  it('the browser is online again: the service is checked, no question is sent', async () => {
    responses = [new TypeError('Failed to fetch'), respondProblem(503, 'STORE_LOCKED')];
    const store = open();
    await askAndWait(store, 'One?');
    window.dispatchEvent(new Event('online'));
    await vi.waitFor(() => expect(sent).toHaveLength(2), PATIENT);
    expect(store.read().serviceDown).toBe(true);
    responses = [new Response('{}', {headers: {'content-type': 'application/json'}})];
    window.dispatchEvent(new Event('online'));
    await vi.waitFor(() => expect(store.read().serviceDown).toBe(false), PATIENT);
    expect(sent.slice(1)).toEqual([{}, {}]);
  });
});

describe('storage', () => {
  it('brings the conversation back after a reload', async () => {
    responses = [respond([encodeAnswer('Yes.')]), respond([encodeAnswer('So.')])];
    const before = open();
    await askAndWait(before, 'One?');
    const after = open();
    expect(after.read().turns).toEqual(before.read().turns);
    await askAndWait(after, 'Why?');
    expect(sent[1]).toMatchObject({conversation_id: 'c1', history: [{question: 'One?'}]});
  });

  it('keeps the text that had arrived at a reload, to try again', async () => {
    const [store] = await openRunning();
    window.dispatchEvent(new Event('pagehide'));
    const after = open();
    expect(statuses(after)).toEqual(['cut_off']);
    expect(texts(after)).toEqual(['A rob']);
    store.stop();
  });

  it('is emptied for a new conversation, also while an answer arrives', async () => {
    const [store, live] = await openRunning();
    store.clear();
    live.send(encodeEvent('delta', {text: 'late'}) + encodeEvent('done', DONE));
    await vi.waitFor(() => expect(live.isCancelled).toBe(true), PATIENT);
    expect(store.read()).toMatchObject({turns: [], busy: false});
    expect(storage.getItem(CONVERSATION_KEY)).toBeNull();
    responses = [respond([encodeAnswer('Yes.')])];
    await askAndWait(store, 'New?');
    expect(sent.at(-1)).not.toHaveProperty('conversation_id');
    expect(sent.at(-1)).toHaveProperty('history', []);
    expect(loadConversation(storage).turns).toHaveLength(1);
  });
});

describe('a new conversation', () => {
  it('can be undone until the next question', async () => {
    responses = [respond([encodeAnswer('Yes.')]), respond([encodeAnswer('No.')])];
    const store = open();
    await askAndWait(store, 'One?');
    const {turns} = store.read();
    store.clear();
    expect(store.read()).toMatchObject({turns: [], canUndo: true});
    store.undo();
    expect(store.read()).toMatchObject({turns, canUndo: false});
    expect(loadConversation(storage).turns).toHaveLength(1);
    await askAndWait(store, 'Two?');
    expect(sent[1]).toMatchObject({conversation_id: 'c1', history: [{question: 'One?'}]});
  });

  it('cannot be undone after a question, or if there was nothing', async () => {
    const store = open();
    store.clear();
    expect(store.read().canUndo).toBe(false);
    responses = [respond([encodeAnswer('Yes.')]), respond([encodeAnswer('No.')])];
    await askAndWait(store, 'One?');
    store.clear();
    await askAndWait(store, 'Two?');
    store.undo();
    expect(store.read().turns.map(({asked}) => asked.question)).toEqual(['Two?']);
  });
});

describe('passages in place of a slow answer', () => {
  it('are those that were found, and end the request', async () => {
    const live = new LiveResponse();
    responses = [live.response];
    const store = open();
    store.ask({question: 'Why?'});
    const source = {number: 1, text: 'It falls.', title: 'T', section: 'S', url: '/a'};
    live.send(encodeEvent('start', {...START, model: 'm'}) + encodeEvent('sources', {sources: [source]}));
    await vi.waitFor(() => expect(store.read().turns[0]?.sources).toHaveLength(1), PATIENT);
    store.showPassages();
    await vi.waitFor(() => expect(live.isCancelled).toBe(true), PATIENT);
    expect(store.read()).toMatchObject({
      busy: false,
      turns: [{status: 'done', kind: 'extracted', level: 'closest_passages'}],
    });
    expect(store.read().turns[0]?.passages).toMatchObject([{number: 1, text: 'It falls.'}]);
    expect(store.read().turns[0]?.model).toBeUndefined();
  });
});

describe('rating', () => {
  it('is kept with its turn if the service stored it', async () => {
    responses = [respond([encodeAnswer('Yes.')]), new Response(null, {status: 204})];
    const store = open();
    await askAndWait(store, 'One?');
    expect(await store.rate(store.read().turns[0]!, 'down', 'A figure')).toBe(true);
    expect(sent[1]).toEqual({answer_id: 'a1', thumb: 'down', note: 'A figure'});
    expect(open().read().turns[0]?.rating).toBe('down');
  });

  it('fails quietly', async () => {
    responses = [respond([encodeAnswer('Yes.')]), respondProblem(404, 'QUESTION_LOG_OFF')];
    const store = open();
    await askAndWait(store, 'One?');
    const [turn] = store.read().turns;
    expect(await store.rate(turn!, 'up')).toBe(false);
    expect(store.read().turns[0]?.rating).toBeUndefined();
    expect(await store.rate({...turn!, answerId: undefined}, 'up')).toBe(false);
    expect(sent).toHaveLength(2);
  });
});
