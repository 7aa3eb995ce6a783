import {afterEach, expect, it, vi} from 'vitest';
import {checkReady, fetchContents, rateAnswer} from '../../src/service/requests';
import {readRetryAfter} from '../../src/service/problems';
import {respondProblem} from './streams';

const SETTINGS = {serviceUrl: '', apiKey: 'k1'};

afterEach(() => vi.unstubAllGlobals());

const answerWith = (response: () => Response) => {
  const fetching = vi.fn<typeof fetch>(async () => response());
  vi.stubGlobal('fetch', fetching);
  return fetching;
};

const json = (body: unknown): Response =>
  new Response(JSON.stringify(body), {headers: {'content-type': 'application/json'}});

it('a rating is sent as a thumb with its note', async () => {
  const fetching = answerWith(() => new Response(null, {status: 204}));
  await rateAnswer(SETTINGS, {answerId: 'a1', thumb: 'down', note: ' No figure. '});
  await rateAnswer(SETTINGS, {answerId: 'a1', thumb: 'up', note: ' '});
  const bodies = fetching.mock.calls.map(([, options]) => JSON.parse(String(options?.body)));
  expect(fetching.mock.calls[0]?.[0]).toBe('/v1/feedback');
  expect(bodies).toEqual([
    {answer_id: 'a1', thumb: 'down', note: 'No figure.'},
    {answer_id: 'a1', thumb: 'up'},
  ]);
});

it('a rating that another server accepts is a failure', async () => {
  answerWith(() => new Response('<h1>Book</h1>'));
  await expect(rateAnswer(SETTINGS, {answerId: 'a1', thumb: 'up'})).rejects.toThrow('SERVICE_DOWN');
});

it('a rating that the service refuses is a failure', async () => {
  answerWith(() => respondProblem(404, 'QUESTION_LOG_OFF'));
  await expect(rateAnswer(SETTINGS, {answerId: 'a1', thumb: 'up'})).rejects.toThrow('LOG_OFF');
});

it('the contents keep what has the right type', async () => {
  const page = {title: 'T', url: '/t', doc_path: 't.md', module: 'm', chapter: ''};
  const sections = [{heading: 'H', url: '/t#h', level: 3}, 'no section', null];
  const fetching = answerWith(() => json({pages: [{...page, sections, extra: 1}, 7]}));
  const pages = await fetchContents(SETTINGS, {module: 'module 1&2'});
  expect(fetching.mock.calls[0]?.[0]).toBe('/v1/contents?module=module+1%262');
  expect(pages).toEqual([{...page, sections: [{heading: 'H', url: '/t#h', level: 3}]}]);
});

it('contents that are no JSON come from another server', async () => {
  answerWith(() => new Response('<h1>Book</h1>'));
  await expect(fetchContents(SETTINGS, {url: '/t'})).rejects.toThrow('SERVICE_DOWN');
});

it('a service is ready only if it says so itself', async () => {
  answerWith(() => json({status: 'ready'}));
  expect(await checkReady(SETTINGS)).toBe(true);
  answerWith(() => respondProblem(503, 'COLLECTION_MISSING'));
  expect(await checkReady(SETTINGS)).toBe(false);
  answerWith(() => new Response('<h1>Book</h1>', {headers: {'content-type': 'text/html'}}));
  expect(await checkReady(SETTINGS)).toBe(false);
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('Failed to fetch')));
  expect(await checkReady(SETTINGS)).toBe(false);
});

it('Retry-After may be a date', () => {
  const now = Date.parse('2026-01-01T00:00:00Z');
  expect(readRetryAfter('Thu, 01 Jan 2026 00:00:30 GMT', now)).toBe(30);
  expect(readRetryAfter('Wed, 31 Dec 2025 00:00:00 GMT', now)).toBe(0);
  expect(readRetryAfter('', now)).toBeUndefined();
  expect(readRetryAfter(null, now)).toBeUndefined();
});
