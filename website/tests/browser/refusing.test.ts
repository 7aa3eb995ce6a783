import {expect, test} from 'vitest';

import {setScript} from './harness/model';
import {readTargets} from './harness/panel';
import {openBook} from './harness/reader';
import {findModel, findWriting} from './harness/scripted';
import {drag, findControl} from './harness/selecting';

test('a question that the book does not cover gets no made-up answer', async () => {
  const {panel} = await openBook();
  await panel.open();
  expect(await panel.ask('What is a good recipe for tomato soup?')).toBe('refused');
  await panel.waitForText('The book does not cover this.');
  expect(await panel.citations.count()).toBe(0);
  expect(await panel.turn.getByText('The book says').count()).toBe(0);
});

test('a page that does not cover a question says so and offers the whole book', async () => {
  const {panel, sent} = await openBook();
  await panel.open();
  await panel.chooseScope('This page');
  await panel.ask('What is a good recipe for tomato soup?');
  await panel.waitForText('This page does not cover this.');
  await panel.button('Search the whole book').click();
  await expect.poll(() => sent.length).toBe(2);
  expect(sent[1]?.filters).toBeUndefined();
  await panel.waitForEnd();
});

test('a refusal leads to the search of the site with the question filled in', async () => {
  const {page, panel} = await openBook();
  await panel.open();
  const question = 'Which colour is best for a robot?';
  await panel.ask(question);
  await panel.button('Search the site for this').click();
  await expect.poll(() => page.getByPlaceholder('Search').first().inputValue()).toBe(question);
});

test('a refusal links to related sections', async () => {
  const {panel, book} = await openBook();
  await panel.open();
  expect(await panel.ask('Which colour is best for a robot?')).toBe('refused');
  const links = await panel.turn.locator('a').evaluateAll(readTargets);
  expect(links.length).toBeGreaterThan(0);
  expect(links.filter((link) => !link.startsWith(book))).toEqual([]);
});

test('a model that declines does not overrule the book, which is quoted', async () => {
  await setScript(findModel(), {
    pieces: ['The sources do not answer this question.'],
    quotes: false,
  });
  const {panel} = await openBook({book: findWriting().book});
  await panel.open();
  expect(await panel.ask('What is the zero moment point?')).toBe('done');
  await panel.waitForText('The model found no answer in these passages.');
  await panel.waitForText('no horizontal component');
  expect(await panel.turn.innerText()).not.toContain('The sources do not answer');
});

test('a selection that does not answer offers the whole book', async () => {
  const {page, panel, sent} = await openBook();
  await drag(page, page.locator('article p').first());
  await findControl(page).click();
  expect(await panel.ask('How much does a GPU for Isaac Sim cost?')).toBe('refused');
  await panel.waitForText('Your selection does not answer this.');
  await panel.turn.getByRole('button', {name: /whole book/i}).click();
  await expect.poll(() => sent.length).toBe(2);
  await panel.waitForEnd();
  expect(sent[0]).toMatchObject({mode: 'selected_text_only'});
  expect(sent[1]).toMatchObject({mode: 'normal', question: sent[0]?.question});
  expect(sent[1]?.selected_text).toBeUndefined();
});

test('a selection that does not answer can be answered from anyway', async () => {
  const {page, panel, sent} = await openBook();
  await drag(page, page.locator('article p').first());
  await findControl(page).click();
  await panel.ask('How much does a GPU for Isaac Sim cost?');
  await panel.turn.getByRole('button', {name: /anyway/i}).click();
  await expect.poll(() => sent.length).toBe(2);
  await panel.waitForEnd();
  expect(sent[1]).toMatchObject({mode: 'selected_text_only', even_if_unrelated: true});
  expect(sent[1]?.selected_text).toBe(sent[0]?.selected_text);
});
