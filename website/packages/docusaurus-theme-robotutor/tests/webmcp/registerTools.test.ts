// @vitest-environment jsdom
import {afterEach, expect, it, vi} from 'vitest';
import type {Settings} from '../../src/settings';
import {findModelContext, registerTools} from '../../src/webmcp/registerTools';
import {encodeEvent, respond, DONE, START} from '../service/streams';

interface Registered {
  name: string;
  title: string;
  description: string;
  execute: (input: unknown) => Promise<{content: {text: string}[]; isError?: boolean}>;
}

const SETTINGS = {serviceUrl: 'https://tutor.test', name: 'RoboTutor'} as Settings;

function offer(context: object): void {
  Object.defineProperty(navigator, 'modelContext', {value: context, configurable: true});
}

function register(): Registered[] {
  const tools: Registered[] = [];
  offer({registerTool: (tool: Registered) => tools.push(tool)});
  registerTools(SETTINGS, 'Robots');
  return tools;
}

afterEach(() => {
  vi.unstubAllGlobals();
  delete (navigator as {modelContext?: unknown}).modelContext;
});

it('a browser without the interface gets no tools and no error', () => {
  expect(findModelContext()).toBeNull();
  expect(() => registerTools(SETTINGS, 'Robots')).not.toThrow();
});

it('two tools that only read are named after the site', () => {
  const tools = register();
  expect(tools.map(({name, title}) => [name, title])).toEqual([
    ['search_docs', 'Search Robots'],
    ['ask', 'Ask Robots'],
  ]);
  let given: unknown[] = [];
  offer({provideContext: (context: {tools: unknown[]}) => (given = context.tools)});
  registerTools(SETTINGS, 'Robots');
  expect(given).toHaveLength(2);
});

it('a browser that refuses the tools does not break the page', () => {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  offer({registerTool: () => { throw new Error('no'); }});
  expect(() => registerTools(SETTINGS, 'Robots')).not.toThrow();
  expect(warn).toHaveBeenCalled();
});

const SOURCE = {
  number: 1, chunk_id: 'a', title: 'Robots', section: 'Legs', url: '/docs/robots#legs',
  module: '', chapter: '', content_type: 'prose', text: 'A leg walks.',
};

it('a search returns passages with addresses, and an answer its sources', async () => {
  const [search, ask] = register();
  const events = encodeEvent('start', START) +
    encodeEvent('sources', {confidence: 1, sources: [SOURCE]}) +
    encodeEvent('done', {...DONE, text: 'It walks [1].'});
  vi.stubGlobal('fetch', async () => respond([events]));
  const found = await search!.execute({query: 'legs'});
  expect(found.content[0]?.text).toContain('A leg walks.');
  expect(found.content[0]?.text).toContain('/docs/robots#legs');
  const answered = await ask!.execute({question: 'What walks?'});
  expect(answered.content[0]?.text).toContain('It walks [1].');
  expect(answered.content[0]?.text).toContain('[1] Robots > Legs: http');
});

it('a refusal names related sections', async () => {
  const events = encodeEvent('start', START) +
    encodeEvent('refusal', {reason: 'not_covered', message: 'No.', related: [SOURCE], offers: []}) +
    encodeEvent('done', {...DONE, kind: 'refused'});
  vi.stubGlobal('fetch', async () => respond([events]));
  for (const tool of register()) {
    const {content} = await tool.execute({query: 'x', question: 'x'});
    expect(content[0]?.text).toMatch(/^No\.\n\nRelated:\n- Robots: http/);
  }
});

it('an invalid input and a service that is down are errors in words', async () => {
  vi.stubGlobal('fetch', () => Promise.reject(new Error('down')));
  for (const tool of register()) {
    expect((await tool.execute({})).isError).toBe(true);
    expect((await tool.execute(null)).isError).toBe(true);
    const down = await tool.execute({query: 'x', question: 'x'});
    expect(down.isError).toBe(true);
    expect(down.content[0]?.text).toContain('not available right now');
  }
});
