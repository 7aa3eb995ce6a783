import {expect, test} from 'vitest';

import {release, setScript} from './harness/model';
import {Panel} from './harness/panel';
import {openBook, PAGE} from './harness/reader';
import {findModel, findWriting} from './harness/scripted';

const QUESTION = 'What is the zero moment point?';

test('a follow-up question shows what was searched', async () => {
  const {panel, sent} = await openBook();
  await panel.open();
  await panel.ask(QUESTION);
  expect(await panel.ask('And why does it matter?')).toBe('done');
  await panel.waitForText(/What is the zero moment point\? And why does it matter\?/);
  expect(sent[1]?.conversation_id ?? sent[1]?.history).toBeTruthy();
});

test('New conversation forgets the earlier questions', async () => {
  const {panel, sent} = await openBook();
  await panel.open();
  await panel.ask(QUESTION);
  await panel.button('New conversation').click();
  expect(await panel.turns.count()).toBe(0);
  await panel.ask('What is the capture point?');
  expect(sent[1]?.history ?? []).toEqual([]);
  expect(sent[1]?.conversation_id).not.toBe(sent[0]?.conversation_id ?? null);
});

test('a new conversation can be undone', async () => {
  const {panel} = await openBook();
  await panel.open();
  await panel.ask(QUESTION);
  await panel.button('New conversation').click();
  await panel.button('Undo').click();
  await panel.waitForText(QUESTION);
  expect(await panel.status()).toBe('done');
});

test('a link asks its question once', async () => {
  const {page, panel, sent} = await openBook({path: `${PAGE}?ask=${encodeURIComponent(QUESTION)}`});
  await panel.field.waitFor();
  await panel.waitForStatus('done');
  expect(new URL(page.url()).search).toBe('');
  await page.reload();
  await panel.reopen();
  await panel.waitForText(QUESTION);
  expect(sent).toHaveLength(1);
});

test('a reload keeps the conversation and asks nothing again', async () => {
  const {page, panel, sent} = await openBook();
  await panel.open();
  await panel.ask(QUESTION);
  // Formulas are TeX until what draws them is loaded.
  await panel.turn.locator('.katex').first().waitFor();
  const text = await panel.turn.innerText();
  await page.reload();
  await panel.reopen();
  await expect.poll(() => panel.turns.count()).toBe(1);
  await expect.poll(() => panel.turn.innerText()).toBe(text);
  expect(sent).toHaveLength(1);
});

test('a reload while an answer arrives offers to try again', async () => {
  const pieces = Array.from({length: 5}, (_, number) => `Robot ${number} says more words. `);
  await setScript(findModel(), {pieces, held: ['The end [1].']});
  const {page, panel, sent} = await openBook({book: findWriting().book});
  await panel.open();
  await panel.send(QUESTION);
  await panel.waitForStatus('streaming');
  await page.reload();
  await panel.reopen();
  await expect.poll(() => panel.status()).toMatch(/^(cut_off|stopped)$/);
  expect(await panel.button('Try again').isVisible()).toBe(true);
  expect(sent).toHaveLength(1);
});

test('another page keeps the panel, and an answer goes on arriving', async () => {
  const pieces = Array.from({length: 5}, (_, number) => `Part ${number} of the long answer. `);
  await setScript(findModel(), {pieces, held: ['The last part of the long answer.']});
  const {page, panel} = await openBook({book: findWriting().book});
  await panel.open();
  await panel.send(QUESTION);
  await panel.waitForStatus('streaming');
  await page.locator('.pagination-nav__link--next').click();
  await page.waitForURL((url) => !url.pathname.endsWith(PAGE));
  expect(await panel.status()).toBe('streaming');
  await release(findModel());
  expect(await panel.waitForEnd()).toBe('done');
  await panel.waitForText('The last part');
});

test('back and forward keep the conversation', async () => {
  const {page, panel} = await openBook();
  await panel.open();
  await panel.ask(QUESTION);
  const first = page.url();
  await page.locator('.pagination-nav__link--next').click();
  await page.waitForURL((url) => url.href !== first);
  await page.goBack();
  await page.waitForURL(first);
  expect(await panel.turns.count()).toBe(1);
  await page.goForward();
  await page.waitForURL((url) => url.href !== first);
  expect(await panel.turns.count()).toBe(1);
  expect(await panel.status()).toBe('done');
});

test('two tabs have conversations of their own', async () => {
  const {context, page, panel} = await openBook();
  await panel.open();
  await panel.ask(QUESTION);
  const other = await context.newPage();
  await other.goto(page.url());
  const otherPanel = new Panel(other);
  await otherPanel.open();
  expect(await otherPanel.turns.count()).toBe(0);
  await otherPanel.ask('What is the capture point?');
  await page.reload();
  await panel.reopen();
  await panel.waitForText(QUESTION);
  expect(await panel.turns.count()).toBe(1);
});
