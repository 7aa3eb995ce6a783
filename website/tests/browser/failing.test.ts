import {expect, inject, onTestFinished, test} from 'vitest';

import {release, setScript} from './harness/model';
import {startProxy} from './harness/proxy';
import {openBook} from './harness/reader';
import {findModel, findWriting} from './harness/scripted';
import {type Service, type Settings, startService} from './harness/service';

const QUESTION = 'What is the zero moment point?';
const FAILED_LOAD = /Failed to load resource/;

/** Starts a service that only the current test uses. */
async function startOwnService(settings: Settings = {}): Promise<Service> {
  const service = await startService(inject('indexDir'), settings);
  onTestFinished(() => service.stop());
  return service;
}

test('a service that is down says so once, and the book works', async () => {
  const {origin} = new URL(inject('quoting').book);
  const service = await startOwnService({SERVE_ORIGINS: origin});
  // The files of the pages come from a service that stays up; only the questions go to the other.
  const {page, panel} = await openBook({expected: [FAILED_LOAD]});
  await page.route('**/v1/**', (route) =>
    route.continue({url: route.request().url().replace(/^http:\/\/[^/]+/, service.origin)}),
  );
  await panel.open();
  expect(await panel.ask(QUESTION)).toBe('done');
  await service.stop('SIGKILL');
  expect(await panel.ask('What is the capture point?')).toBe('failed');
  const message = 'RoboTutor is not available right now. The book works as usual.';
  await panel.waitForText(message);
  // Once on the screen, and once for screen readers.
  const written = panel.root.locator('p:not([role="status"])', {hasText: message});
  expect(await written.count()).toBe(1);
  expect(await panel.root.locator('p[role="status"]').innerText()).toBe(message);
  await panel.waitForText('no horizontal component');
  await page.locator('.pagination-nav__link--next').click();
  await page.getByRole('heading', {level: 1}).waitFor();
  expect(await written.count()).toBe(1);
});

test('a stream that breaks off keeps its text and can be tried again', async () => {
  const pieces = Array.from({length: 60}, (_, number) => `Part ${number} of the long answer. `);
  await setScript(findModel(), {pieces, pauseMs: 20});
  let limit: number | undefined = 14_000;
  const service = findWriting();
  const proxied = await startProxy({...service, stop: async () => undefined}, {
    cutAnswersAfter: () => limit,
  });
  const {panel} = await openBook({book: proxied, expected: [FAILED_LOAD, /ERR_/]});
  await panel.open();
  expect(await panel.ask(QUESTION)).toBe('cut_off');
  await panel.waitForText('The answer was cut off.');
  limit = undefined;
  await panel.button('Try again').click();
  await panel.waitForStatus('done');
  await panel.waitForText('Part 59 of the long answer');
  expect(await panel.turns.count()).toBe(1);
});

test('a model that breaks off in the middle is not shown as a complete answer', async () => {
  await setScript(findModel(), {pieces: ['A first sentence of the answer. ', 'And '], end: 'cut'});
  const {panel} = await openBook({book: findWriting().book});
  await panel.open();
  const status = await panel.ask(QUESTION);
  expect(['failed', 'cut_off']).toContain(status);
  expect(await panel.button('Try again').isVisible()).toBe(true);
});

test('too many questions name the seconds to wait', async () => {
  const service = await startOwnService({SERVE_CLIENT_RATE: '1/10second'});
  const {panel} = await openBook({book: service.book, expected: [FAILED_LOAD]});
  await panel.open();
  await panel.field.fill(QUESTION);
  // Just before, so that little of the ten seconds is over when the panel asks.
  await fetch(`${service.origin}/v1/answers`, {
    method: 'POST',
    headers: {'content-type': 'application/json'},
    body: JSON.stringify({question: QUESTION}),
  });
  await panel.field.press('Enter');
  await panel.waitForStatus('failed');
  await panel.waitForText(/That was a lot of questions\. Try again in \d+ seconds?\./);
  await panel.waitForText('You can ask again now.');
  await panel.button('Try again').click();
  await panel.waitForStatus('done');
});

test('a slow answer shows that it is being looked for', async () => {
  await setScript(findModel(), {pieces: [], held: ['At last the model answers.']});
  const {panel} = await openBook({book: findWriting().book});
  await panel.open();
  await panel.send(QUESTION);
  await panel.waitForText('Writing the answer'); // the passages have arrived
  await release(findModel());
  expect(await panel.waitForEnd()).toBe('done');
  await panel.waitForText('At last');
});

test.each([
  ['fails', 500],
  ['gets too many questions', 429],
])('a model that %s is told in plain words, and the book is quoted', async (_, status) => {
  // A service of its own, because failures make it stop asking the model for a while.
  const settings = {OPENAI_BASE_URL: `${findModel()}/v1`, ANSWER_MODEL: 'scripted'};
  const service = await startOwnService(settings);
  await setScript(findModel(), {status});
  const {panel} = await openBook({book: service.book});
  await panel.open();
  expect(await panel.ask(QUESTION)).toBe('done');
  await panel.waitForText('The model could not answer.');
  await panel.waitForText('no horizontal component');
  const text = await panel.turn.innerText();
  expect(text).not.toMatch(/500|429|HTTP|Error|undefined|null/);
  await setScript(findModel(), {pieces: ['It works again after the failure.']});
  expect(await panel.ask('What is the capture point?')).toBe('done');
  await panel.waitForText('It works again');
});

test('a service with another protocol is not misread', async () => {
  const {page, panel} = await openBook();
  await page.route('**/v1/answers', async (route) => {
    const reply = await route.fetch();
    const body = (await reply.text()).replace(/"protocol": ?1/, '"protocol": 99');
    await route.fulfill({response: reply, body});
  });
  await panel.open();
  expect(await panel.ask(QUESTION)).toBe('failed');
  expect(await panel.citations.count()).toBe(0);
});

test('a reader who is offline can ask again later', async () => {
  const {context, panel} = await openBook({context: {}, expected: [FAILED_LOAD, /ERR_INTERNET/]});
  await panel.open();
  await context.setOffline(true);
  expect(await panel.ask(QUESTION)).toBe('failed');
  await context.setOffline(false);
  await panel.button('Try again').click();
  await panel.waitForStatus('done');
});
