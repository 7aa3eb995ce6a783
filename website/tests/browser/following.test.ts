import type {Panel} from './harness/panel';
import {expect, test} from 'vitest';

import {setScript} from './harness/model';
import {openBook} from './harness/reader';
import {findModel, findWriting} from './harness/scripted';

const LONG = Array.from({length: 120}, (_, number) => `Line ${number} of the answer [1].\n\n`);

/** Returns how far the end of the conversation is below what the reader sees, in pixels. */
async function readDistance(panel: Panel): Promise<number> {
  return panel.turn.evaluate((turn) => {
    let box: Element | null = turn;
    while (box && !/auto|scroll/.test(getComputedStyle(box).overflowY)) {
      box = box.parentElement;
    }
    return box ? box.scrollHeight - box.scrollTop - box.clientHeight : Number.NaN;
  });
}

test('the panel follows an answer while the reader is at its end', async () => {
  await setScript(findModel(), {pieces: LONG, pauseMs: 30});
  const {panel} = await openBook({book: findWriting().book});
  await panel.open();
  await panel.send('What is the zero moment point?');
  await panel.waitForText('Line 60 of the answer');
  expect(await readDistance(panel)).toBeLessThan(120);
  await panel.waitForEnd();
});

test('the panel stays where the reader scrolled to, until a jump to the latest', async () => {
  // The answer does not end, because its sources would appear below the text.
  await setScript(findModel(), {pieces: LONG, pauseMs: 30, end: 'silence'});
  const {page, panel} = await openBook({book: findWriting().book});
  await panel.open();
  await panel.send('What is the zero moment point?');
  await panel.waitForText('Line 40 of the answer');
  await panel.turn.hover();
  await page.mouse.wheel(0, -600);
  await expect.poll(() => readDistance(panel)).toBeGreaterThan(300);
  const before = await panel.turn.evaluate((turn) => turn.getBoundingClientRect().top);
  await panel.waitForText('Line 80 of the answer');
  const after = await panel.turn.evaluate((turn) => turn.getBoundingClientRect().top);
  expect(Math.abs(after - before)).toBeLessThan(2);

  await panel.button('Jump to the latest').click();
  await expect.poll(() => readDistance(panel)).toBeLessThan(120);
  expect(await panel.button('Jump to the latest').count()).toBe(0);
});
