import {readFileSync} from 'node:fs';
import fc from 'fast-check';
import {afterEach, describe, expect, it, vi} from 'vitest';
import {askService, STALL_MS} from '../../src/service/askService';
import {ServiceError} from '../../src/service/problems';
import type {AnswerEvent, AnswerRequest} from '../../src/service/protocol';
import {
  DONE,
  LiveResponse,
  START,
  encodeAnswer,
  encodeEvent,
  respond,
  respondProblem,
} from './streams';

const SETTINGS = {serviceUrl: 'https://tutor.test'};
const REQUEST: AnswerRequest = {question: 'What is a robot?', mode: 'normal'};

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const answerWith = (response: () => Response | Promise<Response>) => {
  const fetching = vi.fn<typeof fetch>(async () => response());
  vi.stubGlobal('fetch', fetching);
  return fetching;
};

async function collect(
  settings = SETTINGS,
  signal = new AbortController().signal,
  request = REQUEST,
): Promise<AnswerEvent[]> {
  const events: AnswerEvent[] = [];
  for await (const event of askService(settings, request, signal)) {
    events.push(event);
  }
  return events;
}

async function findProblem(): Promise<ServiceError['problem']> {
  const error: unknown = await collect().catch((thrown: unknown) => thrown);
  if (!(error instanceof ServiceError)) {
    throw new Error(`no problem, but ${String(error)}`);
  }
  return error.problem;
}

const names = (events: AnswerEvent[]): string[] => events.map(({event}) => event);

const readText = (events: AnswerEvent[]): string =>
  events.map((event) => (event.event === 'delta' ? event.data.text : '')).join('');

describe('a page that is not part of the book of the service', () => {
  const about: AnswerRequest = {...REQUEST, mode: 'selected_text_only', source_url: '/other/page'};
  const askAbout = (): Promise<AnswerEvent[]> =>
    collect(SETTINGS, new AbortController().signal, about);
  const bodies = (fetching: ReturnType<typeof answerWith>): AnswerRequest[] =>
    fetching.mock.calls.map(([, options]) => JSON.parse(String(options?.body)) as AnswerRequest);

  it('is left out of the question, and the operator is told', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    const answers = [respondProblem(400, 'QUERY_INVALID'), respond([encodeAnswer('Yes.')])];
    const fetching = answerWith(() => answers.shift()!);
    expect(readText(await askAbout())).toBe('Yes.');
    const {source_url: _, ...without} = about;
    expect(bodies(fetching)).toEqual([about, without]);
    expect(warn).toHaveBeenCalledExactlyOnceWith(expect.stringMatching(/other\/page.*SITE_BASE_URL/));
    warn.mockRestore();
  });

  it('is not blamed for a question that stays invalid', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    const fetching = answerWith(() => respondProblem(400, 'QUERY_INVALID'));
    await expect(askAbout()).rejects.toThrow('QUERY_INVALID');
    expect(fetching).toHaveBeenCalledTimes(2);
    expect(warn).not.toHaveBeenCalled();
    warn.mockRestore();
  });

  it.each([429, 503])('does not repeat a question after status %s', async (status) => {
    const fetching = answerWith(() => respondProblem(status, 'BUSY'));
    await expect(askAbout()).rejects.toThrow();
    expect(fetching).toHaveBeenCalledTimes(1);
  });
});

describe('the request', () => {
  it('asks for a stream at the address of the service', async () => {
    const fetching = answerWith(() => respond([encodeAnswer('Yes.')]));
    await collect();
    const [url, options] = fetching.mock.calls[0] ?? [];
    expect(url).toBe('https://tutor.test/v1/answers');
    expect(options?.method).toBe('POST');
    expect(JSON.parse(String(options?.body))).toEqual(REQUEST);
    expect(options?.headers).toEqual({
      Accept: 'text/event-stream',
      'Content-Type': 'application/json',
    });
  });

  it('sends the key', async () => {
    const fetching = answerWith(() => respond([encodeAnswer('Yes.')]));
    await collect({...SETTINGS, apiKey: 'k1'} as typeof SETTINGS);
    expect(fetching.mock.calls[0]?.[1]?.headers).toHaveProperty('Authorization', 'Bearer k1');
  });
});

describe('recordings of the real service', () => {
  it.each([
    ['quoted', ['start', 'sources', 'delta', 'done']],
    ['refused', ['start', 'sources', 'refusal', 'done']],
    ['greeting', ['start', 'sources', 'delta', 'done']],
    ['selection_refused', ['start', 'sources', 'refusal', 'done']],
  ])('%s has these events', async (name, expected) => {
    const bytes = readFileSync(new URL(`./recordings/${name}.sse`, import.meta.url));
    answerWith(() => respond([new Uint8Array(bytes)]));
    const events = await collect();
    expect(names(events)).toEqual(expected);
    const data = bytes.toString().split('\n').filter((line) => line.startsWith('data: '));
    // Nothing that the service sends is lost on the way.
    events.forEach((event, place) => {
      expect(event.data).toEqual(JSON.parse(data[place]!.slice(6)));
    });
  });
});

describe('a stream in pieces', () => {
  const text = ['Kinematik für Roboter: ', '$\\dot{q}$ — 机器人 🤖', ' e\u0301\n\n[1]'];
  const bytes = new TextEncoder().encode(`: waiting\n\n${encodeAnswer(...text)}`);

  it('is the same wherever it is split, also within a character', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes.length), {maxLength: 40}), async (cuts) => {
        const ends = [...new Set([...cuts, bytes.length])].sort((a, b) => a - b);
        const pieces = ends.map((end, at) => bytes.slice(at === 0 ? 0 : ends[at - 1], end));
        answerWith(() => respond(pieces));
        const events = await collect();
        expect(names(events)).toEqual(['start', 'delta', 'delta', 'delta', 'done']);
        expect(readText(events)).toBe(text.join(''));
      }),
      {numRuns: 60},
    );
  });

  it('is the same in single bytes', async () => {
    answerWith(() => respond([...bytes].map((byte) => Uint8Array.of(byte))));
    expect(readText(await collect())).toBe(text.join(''));
  });

  it.each(['\r\n', '\r'])('may end lines with %j', async (lineEnd) => {
    const stream = `${encodeAnswer(...text)}: end\n`.replaceAll('\n', lineEnd);
    answerWith(() => respond([stream]));
    expect(readText(await collect())).toBe(text.join(''));
  });
});

describe('the end of a stream', () => {
  it('is done or error, and nothing is read after it', async () => {
    const late = encodeEvent('delta', {text: 'late'});
    answerWith(() => respond([encodeAnswer('Yes.'), late]));
    expect(readText(await collect())).toBe('Yes.');
    const failure = {code: 'ANSWER_FAILED', message: 'm', transient: true, retry_after_s: 1};
    answerWith(() => respond([encodeEvent('start', START), encodeEvent('error', failure), late]));
    expect(names(await collect())).toEqual(['start', 'error']);
  });

  it('ignores unknown events', async () => {
    const unknown = encodeEvent('weather', {text: 'Sun'}) + 'data: {"text": "no name"}\n\n';
    answerWith(() => respond([encodeEvent('start', START), unknown, encodeEvent('done', DONE)]));
    expect(names(await collect())).toEqual(['start', 'done']);
  });

  it('was cut off without a last event, after the text so far', async () => {
    answerWith(() => respond([encodeEvent('start', START), encodeEvent('delta', {text: 'Ye'})]));
    const events: AnswerEvent[] = [];
    const reading = async (): Promise<void> => {
      for await (const event of askService(SETTINGS, REQUEST, new AbortController().signal)) {
        events.push(event);
      }
    };
    await expect(reading()).rejects.toMatchObject({problem: {code: 'CUT_OFF'}});
    expect(readText(events)).toBe('Ye');
  });

  it('was cut off in the middle of an event or by the network', async () => {
    answerWith(() => respond([encodeAnswer('Yes.').slice(0, -3)]));
    expect((await findProblem()).code).toBe('CUT_OFF');
    const live = new LiveResponse();
    answerWith(() => live.response);
    const finding = findProblem();
    live.send(encodeEvent('start', START));
    await Promise.resolve();
    live.break();
    expect((await finding).code).toBe('CUT_OFF');
  });

  it('was cut off if no byte arrives for a while; comments count as bytes', async () => {
    vi.useFakeTimers();
    const live = new LiveResponse();
    answerWith(() => live.response);
    let ended = false;
    const finding = findProblem().finally(() => {
      ended = true;
    });
    for (let wait = 0; wait < 5; wait += 1) {
      await vi.advanceTimersByTimeAsync(STALL_MS - 1_000);
      live.send(': waiting\n\n');
    }
    expect(ended).toBe(false);
    await vi.advanceTimersByTimeAsync(STALL_MS + 1);
    expect((await finding).code).toBe('CUT_OFF');
    expect(live.isCancelled).toBe(true);
  });

  it('is told at once to a service that does not begin to answer', async () => {
    vi.useFakeTimers();
    vi.stubGlobal('fetch', (_: string, {signal}: RequestInit) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason));
      }));
    const finding = findProblem();
    await vi.advanceTimersByTimeAsync(STALL_MS + 1);
    expect(await finding).toEqual({
      code: 'TOO_SLOW',
      words: 'tooSlow',
    });
  });

  it('comes quietly if the reader stops, and the connection is closed', async () => {
    const live = new LiveResponse();
    answerWith(() => live.response);
    const stopping = new AbortController();
    const collecting = collect(SETTINGS, stopping.signal);
    live.send(encodeEvent('start', START));
    await new Promise((resolve) => setTimeout(resolve));
    stopping.abort();
    expect(names(await collecting)).toEqual(['start']);
    expect(live.isCancelled).toBe(true);
  });

  it('comes quietly if the reader stops before the response, or before the request', async () => {
    const stopping = new AbortController();
    vi.stubGlobal('fetch', (_: string, {signal}: RequestInit) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason));
      }));
    const collecting = collect(SETTINGS, stopping.signal);
    stopping.abort();
    expect(await collecting).toEqual([]);
    answerWith(() => respond([encodeAnswer('Yes.')]));
    expect(await collect(SETTINGS, AbortSignal.abort())).toEqual([]);
  });

  it('leaves no timer', async () => {
    vi.useFakeTimers();
    answerWith(() => respond([encodeAnswer('Yes.')]));
    await collect();
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('problems', () => {
  it.each([2, 0, '1', undefined])('protocol %j does not fit', async (protocol) => {
    answerWith(() => respond([encodeEvent('start', {...START, protocol}), encodeAnswer('Yes.')]));
    expect(await findProblem()).toEqual({
      code: 'VERSIONS_DIFFER',
      words: 'versions',
    });
  });

  it('a failing network means that the service is down', async () => {
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('Failed to fetch')));
    expect(await findProblem()).toEqual({code: 'SERVICE_DOWN', words: 'down'});
  });

  it.each([404, 405, 502, 503, 504])('so does status %i of another server', async (status) => {
    answerWith(() => new Response('<h1>No</h1>', {status, headers: {'content-type': 'text/html'}}));
    expect(await findProblem()).toEqual({code: 'SERVICE_DOWN', words: 'down'});
  });

  it('a web page instead of a stream means the same', async () => {
    answerWith(() => new Response('<h1>Book</h1>', {headers: {'content-type': 'text/html'}}));
    expect((await findProblem()).code).toBe('SERVICE_DOWN');
  });

  it.each([
    [400, 'QUERY_EMPTY', 'unreadable'],
    [401, 'KEY_INVALID', 'notAllowed'],
    [403, 'ORIGIN_NOT_ALLOWED', 'notAllowed'],
    [413, 'BODY_TOO_LARGE', 'tooLong'],
    [421, 'HOST_NOT_ALLOWED', 'notAllowed'],
    [422, 'REQUEST_INVALID', 'unreadable'],
    [500, 'INTERNAL_ERROR', 'failed'],
    [502, 'ANSWER_FAILED', 'failed'],
    [503, 'COLLECTION_MISSING', 'down'],
    [504, 'QDRANT_TIMEOUT', 'tooSlow'],
  ])('status %i with %s names its words', async (status, code, words) => {
    answerWith(() => respondProblem(status, code));
    expect(await findProblem()).toEqual({code, words});
  });

  it.each([
    ['selected_text', 'selectionTooLong'],
    ['question', 'questionTooLong'],
  ])('the invalid field %s is named', async (field, words) => {
    answerWith(() => respondProblem(422, 'REQUEST_INVALID', {errors: [{field, problem: 'long'}]}));
    expect((await findProblem()).words).toBe(words);
  });

  it.each([
    ['20', 20],
    ['1', 1],
    [undefined, 10],
    ['soon', 10],
  ])('too many questions with Retry-After %j', async (header, seconds) => {
    const headers: Record<string, string> = header ? {'retry-after': header} : {};
    answerWith(() => respondProblem(429, 'RATE_LIMITED', {headers}));
    expect(await findProblem()).toMatchObject({words: 'tooMany', retryAfterS: seconds});
  });
});
