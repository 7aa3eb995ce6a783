import {afterEach, describe, expect, it, vi} from 'vitest';
import type {ServiceError} from '../../src/service/problems';
import type {AnswerEvent} from '../../src/service/protocol';
import {askIndex} from '../../src/static/askIndex';
import {usesIndex} from '../../src/static/findIndex';
import type {SearchMessage, SearchReply} from '../../src/static/messages';

const REQUEST = {question: 'What is torque?', mode: 'normal' as const};

class FakeWorker extends EventTarget {
  static replies: ((message: SearchMessage) => SearchReply | null)[] = [];
  static count = 0;

  constructor() {
    super();
    FakeWorker.count += 1;
  }

  postMessage(message: SearchMessage): void {
    const data = FakeWorker.replies.shift()?.(message) ?? null;
    queueMicrotask(() =>
      this.dispatchEvent(data ? new MessageEvent('message', {data}) : new Event('error')),
    );
  }
}

afterEach(() => {
  vi.unstubAllGlobals();
  FakeWorker.replies = [];
});

async function ask(url: string, signal = new AbortController().signal): Promise<AnswerEvent[] | string> {
  const events: AnswerEvent[] = [];
  try {
    for await (const event of askIndex(url, REQUEST, signal)) {
      events.push(event);
    }
  } catch (error) {
    return (error as ServiceError).problem.code;
  }
  return events;
}

describe('a question to the worker', () => {
  it('yields its events, and one worker answers all questions', async () => {
    vi.stubGlobal('Worker', FakeWorker);
    const delta: AnswerEvent = {event: 'delta', data: {text: 'Hello'}};
    const before = FakeWorker.count;
    FakeWorker.replies = [({id}) => ({id, events: [delta]}), ({id}) => ({id, events: []})];
    expect(await ask('/a/')).toEqual([delta]);
    expect(await ask('/a/')).toEqual([]);
    expect(FakeWorker.count - before).toBe(1);
  });

  it('yields nothing after the reader stopped it', async () => {
    vi.stubGlobal('Worker', FakeWorker);
    const delta: AnswerEvent = {event: 'delta', data: {text: 'Hello'}};
    FakeWorker.replies = [({id}) => ({id, events: [delta]})];
    expect(await ask('/b/', AbortSignal.abort())).toEqual([]);
  });

  it.each([
    ['version', 'INDEX_VERSION'],
    ['missing', 'INDEX_MISSING'],
    ['blocked', 'SEARCH_BLOCKED'],
    ['failed', 'SEARCH_FAILED'],
  ] as const)('names the problem %s', async (problem, code) => {
    vi.stubGlobal('Worker', FakeWorker);
    FakeWorker.replies = [({id}) => ({id, problem})];
    expect(await ask(`/${problem}/`)).toBe(code);
  });

  it('is blocked without workers or if the worker does not load, and tries again', async () => {
    vi.stubGlobal('Worker', undefined);
    expect(await ask('/c/')).toBe('SEARCH_BLOCKED');
    vi.stubGlobal('Worker', FakeWorker);
    FakeWorker.replies = [() => null, ({id}) => ({id, events: []})];
    expect(await ask('/c/')).toBe('SEARCH_BLOCKED');
    expect(await ask('/c/')).toEqual([]);
  });
});

describe('the index of the site', () => {
  it.each([
    ['with a manifest', '{"format": 1}', 200, true],
    ['with a page in its place', '<html>', 200, false],
    ['with the manifest of a build without an index', '{"index": null}', 200, false],
    ['without one', '', 404, false],
  ])('%s', async (name, body, status, expected) => {
    vi.stubGlobal('fetch', async () => new Response(body, {status}));
    expect(await usesIndex({serviceUrl: '', searchUrl: `/${name}/`})).toBe(expected);
  });

  it('is looked for once', async () => {
    const ask = vi.fn(async () => new Response('{"index": null}'));
    vi.stubGlobal('fetch', ask);
    for (let times = 0; times < 2; times += 1) {
      expect(await usesIndex({serviceUrl: '', searchUrl: '/once/'})).toBe(false);
    }
    expect(ask).toHaveBeenCalledTimes(1);
  });

  it('is not used beside a service, and not looked for without an address', async () => {
    vi.stubGlobal('fetch', () => Promise.reject(new Error('offline')));
    expect(await usesIndex({serviceUrl: 'https://tutor.test', searchUrl: '/d/'})).toBe(false);
    expect(await usesIndex({serviceUrl: ''})).toBe(false);
    expect(await usesIndex({serviceUrl: '', searchUrl: '/d/'})).toBe(false);
    vi.stubGlobal('fetch', async () => new Response('{"format": 2}'));
    expect(await usesIndex({serviceUrl: '', searchUrl: '/d/'})).toBe(true);
  });
});
