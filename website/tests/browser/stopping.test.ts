import {expect, test} from 'vitest';

import {readState, release, setScript} from './harness/model';
import {openBook} from './harness/reader';
import {findModel, findWriting} from './harness/scripted';

const QUESTION = 'What is the zero moment point?';
const SCRIPT = {
  pieces: Array.from({length: 5}, (_, number) => `Robot ${number} walks here. `),
  held: ['The end of the answer.'],
};

test('Stop keeps the text so far and ends the work of the model', async () => {
  await setScript(findModel(), SCRIPT);
  const {panel} = await openBook({book: findWriting().book});
  await panel.open();
  await panel.send(QUESTION);
  await panel.waitForText('Robot 2 walks here');
  await panel.button('Stop').click();
  await panel.waitForStatus('stopped');
  const text = await panel.turn.innerText();
  expect(text).toContain('Robot 1 walks here');
  await expect.poll(async () => (await readState(findModel())).writing).toBe(0);
  expect(await panel.button('Stop').count()).toBe(0);
  // Nothing may arrive after the answer was stopped.
  await release(findModel());
  expect(await panel.turn.innerText()).toBe(text);
});

test('Try again replaces a stopped answer', async () => {
  await setScript(findModel(), SCRIPT);
  const {panel, sent} = await openBook({book: findWriting().book});
  await panel.open();
  await panel.send(QUESTION);
  await panel.waitForStatus('streaming');
  await panel.button('Stop').click();
  await panel.waitForStatus('stopped');
  await setScript(findModel(), {pieces: ['A complete answer of the model.']});
  await panel.button('Try again').click();
  await panel.waitForStatus('done');
  await panel.waitForText('A complete answer');
  expect(await panel.turn.innerText()).not.toContain('Robot 1');
  expect(await panel.turns.count()).toBe(1);
  expect(sent.map((body) => body.question)).toEqual([QUESTION, QUESTION]);
});

test('Stop works before the first word', async () => {
  await setScript(findModel(), {pieces: [], held: ['late']});
  const {panel} = await openBook({book: findWriting().book});
  await panel.open();
  await panel.send(QUESTION);
  await panel.waitForStatus('searching');
  await panel.waitForText('Writing the answer'); // the passages have arrived, and the model is held
  await panel.button('Stop').click();
  await panel.waitForStatus('stopped');
});

test('a question that is being answered does not take another one', async () => {
  await setScript(findModel(), SCRIPT);
  const {panel, sent} = await openBook({book: findWriting().book});
  await panel.open();
  await panel.send(QUESTION);
  await panel.waitForStatus('streaming');
  await panel.send('And why does it matter?');
  expect(sent).toHaveLength(1);
  expect(await panel.field.inputValue()).toBe('And why does it matter?');
  await panel.button('Stop').click();
});
