import {expect, test} from 'vitest';

import {release, setScript} from './harness/model';
import {readTargets} from './harness/panel';
import {openBook} from './harness/reader';
import {findModel, findWriting} from './harness/scripted';

const QUESTION = 'What is the zero moment point?';

test('an answer from the book has citations and lists its sources as links', async () => {
  const {panel, sent, book} = await openBook();
  await panel.open();
  expect(await panel.ask(QUESTION)).toBe('done');
  expect(sent).toEqual([expect.objectContaining({question: QUESTION, mode: 'normal'})]);
  expect(await panel.turn.innerText()).toContain('no horizontal component');

  expect(await panel.citations.count()).toBeGreaterThan(0);
  expect((await panel.citations.first().innerText()).trim()).toMatch(/^\[?1\]?$/);
  await panel.turn.getByText('The book says').waitFor();
  const links = await panel.turn.locator('a').evaluateAll(readTargets);
  const place = 'balance-zmp-and-capture-point#the-zero-moment-point';
  expect(links.some((link) => link.endsWith(place))).toBe(true);
  expect(links.filter((link) => !link.startsWith(book))).toEqual([]);
});

test('formulas of an answer are typeset and its code is highlighted', async () => {
  const {panel} = await openBook();
  await panel.open();
  await panel.ask(QUESTION);
  await panel.turn.locator('.katex').first().waitFor();
  expect(await panel.turn.locator('.katex-error').count()).toBe(0);
  await panel.ask('How do I launch a ROS 2 node in Python?');
  await panel.turn.locator('pre .token').first().waitFor();
});

test('an answer of a model appears while it is being written', async () => {
  const first = 'The ZMP is the point on the ground where the moment of gravity';
  const end = 'the real CoP stops at the edge and the foot begins to rotate about it';
  const pieces = `${first} and inertia forces has no horizontal component [1]. `.split(/(?<= )/);
  await setScript(findModel(), {pieces, quotes: false, held: [`The plan is impossible: ${end} [1].`]});
  const {panel} = await openBook({book: findWriting().book});
  await panel.open();
  await panel.send(QUESTION);
  await panel.waitForStatus('streaming');
  await panel.waitForText(first);
  expect(await panel.status()).toBe('streaming');
  expect(await panel.turn.innerText()).not.toContain(end);
  await release(findModel());
  await panel.waitForStatus('done');
  await panel.waitForText(end);
  expect(await panel.citations.count()).toBeGreaterThan(0);
});

test('money in an answer is not read as a formula', async () => {
  const pieces = [
    'The ZMP is the point on the ground where the moment of gravity and inertia forces has no ',
    'horizontal component, with the CoM at constant height $z_c$ [1]. ',
    'A sensor costs $5 and a motor costs $7.',
  ];
  await setScript(findModel(), {pieces, quotes: false});
  const {panel} = await openBook({book: findWriting().book});
  await panel.open();
  expect(await panel.ask(QUESTION)).toBe('done');
  await panel.waitForText(/costs \$5 and a motor costs \$7/);
  const written = panel.turn.locator('p', {hasText: 'A sensor costs'});
  await expect.poll(() => written.locator('.katex').count()).toBe(1);
});

test('a greeting gets a reply without sources', async () => {
  const {panel} = await openBook();
  await panel.open();
  expect(await panel.ask('hello')).toBe('done');
  expect(await panel.citations.count()).toBe(0);
  expect(await panel.turn.getByText('The book says').count()).toBe(0);
});

test('a blank question is not sent', async () => {
  const {panel, sent} = await openBook();
  await panel.open();
  await panel.send('   ');
  expect(await panel.button('Ask').isDisabled()).toBe(true);
  expect(sent).toEqual([]);
  expect(await panel.turns.count()).toBe(0);
});

test('a double click on the button asks once', async () => {
  const {panel, sent} = await openBook();
  await panel.open();
  await panel.field.fill(QUESTION);
  await panel.button('Ask').dblclick();
  await panel.waitForEnd();
  expect(sent).toHaveLength(1);
  expect(await panel.turns.count()).toBe(1);
});

test('Enter twice asks once', async () => {
  const {page, panel, sent} = await openBook();
  await panel.open();
  await panel.field.fill(QUESTION);
  await Promise.all([page.keyboard.press('Enter'), page.keyboard.press('Enter')]);
  await panel.waitForEnd();
  expect(sent).toHaveLength(1);
});

test('Shift and Enter start a new line', async () => {
  const {page, panel, sent} = await openBook();
  await panel.open();
  await panel.field.fill('one');
  await panel.field.press('Shift+Enter');
  await page.keyboard.type('two');
  expect(await panel.field.inputValue()).toBe('one\ntwo');
  expect(sent).toEqual([]);
});

test('Enter that confirms a word of an input method does not ask', async () => {
  const {context, page, panel, sent} = await openBook();
  await panel.open();
  await panel.field.focus();
  const client = await context.newCDPSession(page);
  const text = 'ロボット';
  await client.send('Input.imeSetComposition', {text, selectionStart: 4, selectionEnd: 4});
  // Chromium reports the key that an input method handles with the code 229.
  await client.send('Input.dispatchKeyEvent', {
    type: 'keyDown',
    key: 'Enter',
    code: 'Enter',
    windowsVirtualKeyCode: 229,
  });
  await client.send('Input.insertText', {text});
  expect(sent).toEqual([]);
  expect(await panel.field.inputValue()).toBe(text);
  await panel.field.press('Enter');
  await expect.poll(() => sent.length).toBe(1);
  await panel.waitForEnd();
});

test('a corrected question offers the exact words', async () => {
  const {panel, sent} = await openBook();
  await panel.open();
  await panel.ask('What is the zreo momnet piont?');
  await panel.waitForText(/Showing results for .What is the zero moment point\?/);
  await panel.turn.getByRole('button', {name: /zreo momnet piont/}).click();
  await expect.poll(() => sent.length).toBe(2);
  expect(sent[0]?.exact_words).toBeUndefined();
  expect(sent[1]).toMatchObject({question: 'What is the zreo momnet piont?', exact_words: true});
  await panel.waitForEnd();
  // The service accepts the request and corrects nothing this time.
  expect(await panel.status()).toMatch(/^(done|refused)$/);
  expect(await panel.turn.getByText(/Showing results for/).count()).toBe(0);
});

test('an answer is followed by questions about the sections next to it', async () => {
  const {panel, sent} = await openBook({path: 'docs/glossary'});
  await panel.open();
  await panel.ask('What is the zero moment point?');
  const next = panel.turn.locator('[data-robotutor="follow-ups"]').getByRole('button');
  await expect.poll(() => next.count()).toBe(2);
  const question = await next.first().innerText();
  await next.first().click();
  await expect.poll(() => sent.length).toBe(2);
  expect(sent[1]?.question).toBe(question);
  expect(await panel.waitForEnd()).toBe('done');
});

test('a panel offers questions at once, also on the home page', async () => {
  for (const path of ['', 'docs/module-4/4.2-locomotion-manipulation/balance-zmp-and-capture-point']) {
    const {page, panel} = await openBook({path});
    await page.route('**/v1/contents?**', () => undefined); // the service does not answer
    await panel.open();
    const offered = panel.root.getByRole('list', {name: 'You could ask'}).getByRole('button');
    await expect.poll(() => offered.count()).toBe(4);
    await page.unrouteAll({behavior: 'ignoreErrors'});
  }
});

test('an answer of ordinary length fits the panel', async () => {
  const {panel} = await openBook({context: {viewport: {width: 1440, height: 900}}});
  await panel.open();
  await panel.ask('How do I launch a ROS 2 node in Python?');
  const isInView = (): Promise<boolean> =>
    panel.turn.getByRole('button', {name: 'No', exact: true}).evaluate((button) => {
      const list = button.closest('[role="region"]')?.getBoundingClientRect();
      return button.getBoundingClientRect().bottom <= (list?.bottom ?? 0);
    });
  await expect.poll(isInView).toBe(true);
  await panel.turn.getByRole('button', {name: 'Show more'}).first().click();
  await expect.poll(isInView).toBe(false);
});
