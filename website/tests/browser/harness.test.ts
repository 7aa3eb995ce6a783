import {expect, inject, test} from 'vitest';

import {readState, setScript} from './harness/model';
import {openBook} from './harness/reader';
import {findModel, findWriting} from './harness/scripted';
import {readLog} from './harness/service';

async function askDirectly(origin: string, question: string): Promise<Record<string, unknown>> {
  const reply = await fetch(`${origin}/v1/answers`, {
    method: 'POST',
    headers: {'content-type': 'application/json'},
    body: JSON.stringify({question}),
  });
  return (await reply.json()) as Record<string, unknown>;
}

test('the service quotes the book and logs the question', async () => {
  const service = inject('quoting');
  const answer = await askDirectly(service.origin, 'What is the zero moment point?');
  expect(answer).toMatchObject({kind: 'extracted', level: 'answered', model: null});
  const query = `SELECT question FROM answers WHERE answer_id = '${String(answer.answer_id)}'`;
  await expect
    .poll(() => readLog(service, query))
    .toEqual([{question: 'What is the zero moment point?'}]);
});

test('the scripted model writes an answer from the first source', async () => {
  await setScript(findModel(), {});
  const answer = await askDirectly(findWriting().origin, 'What is the zero moment point?');
  expect(answer).toMatchObject({kind: 'generated', level: 'answered', model: 'scripted'});
  expect(answer.text).toMatch(/\[1\]/);
  expect((await readState(findModel())).prompts).toHaveLength(1);
});

test('the service serves the pages of the book', async () => {
  const {page} = await openBook();
  await page.getByRole('heading', {level: 1, name: 'Balance, ZMP and Capture Point'}).waitFor();
});
