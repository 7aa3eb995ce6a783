import {afterAll, beforeAll, beforeEach, expect, test} from 'vitest';

import {openBook} from './harness/reader';
import {startStaticHost, type StaticHost} from './harness/static';

const QUESTION = 'What is the zero moment point?';
const FAILED_LOAD = /Failed to load resource/;

let host: StaticHost;
beforeAll(async () => {
  host = await startStaticHost();
});
afterAll(() => host.stop());
beforeEach(() => {
  host.replaced.clear();
  host.asked.length = 0;
});

test('a site without a service answers with passages, marks and links', async () => {
  const {page, panel} = await openBook({book: host.book, context: {}});
  await panel.open();
  expect(host.asked.filter((path) => path.endsWith('model.onnx'))).toEqual([]);
  expect(await panel.ask(QUESTION)).toBe('done');
  await panel.waitForText('no horizontal component');
  await panel.turn.locator('mark').first().waitFor();
  const asked = await page.evaluate(() => performance.now());
  expect(await panel.ask('How does a node publish messages?')).toBe('done');
  console.info(`later answer: ${Math.round((await page.evaluate(() => performance.now())) - asked)} ms`);
  expect(host.asked.filter((path) => path.endsWith('index.bin'))).toHaveLength(1);
  // There is no service to send a rating to; copying needs none.
  await panel.button('Copy link').last().waitFor();
  expect(await panel.button('Yes').count()).toBe(0);
  await panel.turn.locator('a[href*="#"]').first().click();
  await page.waitForURL(/#/);
  // There is no service, so nothing is asked of one.
  expect(host.asked.filter((path) => path.includes('/v1/'))).toEqual([]);
});

test('a question about something else is refused', async () => {
  const {panel} = await openBook({book: host.book, context: {}});
  await panel.open();
  expect(await panel.ask('Who won the football world cup in 1954?')).toBe('refused');
  await panel.waitForText('does not cover this');
});

test('an index of another version is a sentence', async () => {
  host.replaced.set('manifest.json', JSON.stringify({format: 99}));
  const {panel} = await openBook({book: host.book, context: {}});
  await panel.open();
  expect(await panel.ask(QUESTION)).toBe('failed');
  await panel.waitForText('The search index does not fit this page.');
});

test('a missing or damaged index is a sentence, and the next question tries again', async () => {
  host.replaced.set('index.bin', null);
  const {panel} = await openBook({book: host.book, context: {}, expected: [FAILED_LOAD]});
  await panel.open();
  expect(await panel.ask(QUESTION)).toBe('failed');
  await panel.waitForText('The search index could not be loaded.');
  host.replaced.set('index.bin', 'no index');
  await panel.button('Try again').click();
  await panel.waitForStatus('failed');
  host.replaced.clear();
  await panel.button('Try again').click();
  await panel.waitForStatus('done');
});

test.each([
  ['workers', () => void Object.assign(window, {Worker: undefined})],
  ['storage', () => {
    Storage.prototype.setItem = () => {
      throw new DOMException('full', 'QuotaExceededError');
    };
  }],
])('a browser without %s shows a sentence or the answer', async (name, before) => {
  const {panel} = await openBook({book: host.book, before});
  await panel.open();
  expect(await panel.ask(QUESTION)).toBe(name === 'workers' ? 'failed' : 'done');
  await panel.waitForText(
    name === 'workers' ? 'does not let RoboTutor search on this page' : 'no horizontal component',
  );
});

test('a worker that may not compile WebAssembly is a sentence', async () => {
  host.replaced.set('.wasm', 'no program');
  const {panel} = await openBook({book: host.book, context: {}, expected: [/WebAssembly|ArrayBuffer/]});
  await panel.open();
  expect(await panel.ask(QUESTION)).toBe('failed');
  await panel.waitForText('does not let RoboTutor search on this page');
});
