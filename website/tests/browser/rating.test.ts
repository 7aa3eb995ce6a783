import {expect, inject, test} from 'vitest';

import {openBook, type Reader} from './harness/reader';
import {readLog} from './harness/service';

/** Asks a question and returns a function that reads how its answer is rated. */
async function askAndReadRating({panel}: Reader, question: string) {
  await panel.open();
  await panel.ask(question);
  // Each question of this file is asked once, so its words name the answer.
  const query = `SELECT rating, note FROM ratings NATURAL JOIN answers WHERE question = '${question}'`;
  return () => readLog(inject('quoting'), query);
}

test('Yes is stored as the best rating', async () => {
  const reader = await openBook();
  const readRating = await askAndReadRating(reader, 'Where is the zero moment point?');
  await reader.panel.waitForText('Did this help?');
  await reader.panel.button('Yes').click();
  await expect.poll(readRating).toEqual([{rating: 5, note: ''}]);
});

test('No asks what was missing and stores the note', async () => {
  const reader = await openBook();
  const readRating = await askAndReadRating(reader, 'What is the capture point?');
  await reader.panel.button('No').click();
  const note = reader.panel.root.getByRole('textbox', {name: /What was missing/});
  await note.fill('An example with numbers.');
  await reader.panel.button('Send').click();
  await expect.poll(readRating).toEqual([{rating: 1, note: 'An example with numbers.'}]);
});

test('a rating can be changed', async () => {
  const reader = await openBook();
  const readRating = await askAndReadRating(reader, 'What is a support polygon?');
  await reader.panel.button('Yes').click();
  await expect.poll(readRating).toMatchObject([{rating: 5}]);
  await reader.panel.button('No').click();
  await expect.poll(readRating).toMatchObject([{rating: 1}]);
});
