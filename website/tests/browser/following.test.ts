import {expect, test} from 'vitest';

import {release, setScript} from './harness/model';
import type {Panel} from './harness/panel';
import {openBook} from './harness/reader';
import {findModel, findWriting} from './harness/scripted';

// Sentences of the book, each a paragraph: more than a low window shows at once.
const SCRIPT = {pieces: 10, held: 4};
const LOW = {viewport: {width: 1280, height: 440}};

/** Asks, and waits until more is written than the window shows, but not all. */
async function askAtLength(panel: Panel): Promise<void> {
  await panel.open();
  await panel.send('What is physical AI?');
  const list = panel.root.getByRole('region', {name: 'Conversation'});
  await expect
    .poll(() => list.evaluate((box) => box.scrollHeight - box.clientHeight))
    .toBeGreaterThan(320);
  expect(await panel.status()).toBe('streaming');
}

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
  await setScript(findModel(), SCRIPT);
  const {panel} = await openBook({book: findWriting().book, context: LOW});
  await askAtLength(panel);
  await expect.poll(() => readDistance(panel)).toBeLessThan(120);
  await release(findModel());
  await panel.waitForEnd();
});

test('the panel stays where the reader scrolled to, until a jump to the latest', async () => {
  await setScript(findModel(), SCRIPT);
  const {page, panel} = await openBook({book: findWriting().book, context: LOW});
  await askAtLength(panel);
  await panel.root.getByRole('region', {name: 'Conversation'}).hover();
  await page.mouse.wheel(0, -600);
  await expect.poll(() => readDistance(panel)).toBeGreaterThan(300);
  const before = await panel.turn.evaluate((turn) => turn.getBoundingClientRect().top);
  const distance = await readDistance(panel);
  await release(findModel());
  await panel.waitForEnd(); // the sources appear below the last sentence
  expect(await readDistance(panel)).toBeGreaterThan(distance);
  const after = await panel.turn.evaluate((turn) => turn.getBoundingClientRect().top);
  expect(Math.abs(after - before)).toBeLessThan(2);

  await panel.button('Jump to the latest').click();
  await expect.poll(() => readDistance(panel)).toBeLessThan(120);
  expect(await panel.button('Jump to the latest').count()).toBe(0);
});

/** Returns how far the conversation is scrolled. */
const readTop = (panel: Panel): Promise<number> =>
  panel.root.getByRole('region', {name: 'Conversation'}).evaluate((list) => list.scrollTop);

test('nothing that a reader opens or rates moves what is being read', async () => {
  const {panel} = await openBook({context: {viewport: {width: 1280, height: 560}}});
  await panel.open();
  await panel.ask('What is the zero moment point?');
  await panel.ask('How do I launch a ROS 2 node in Python?');
  await panel.turn.locator('figure').first().waitFor();
  const list = panel.root.getByRole('region', {name: 'Conversation'});
  await list.evaluate((element) => element.scrollBy(0, 150));
  for (const control of [
    panel.turn.locator('summary').first(),
    panel.turn.getByRole('button', {name: 'Show more'}).first(),
    panel.turn.getByRole('button', {name: 'No', exact: true}),
  ]) {
    await control.scrollIntoViewIfNeeded();
    const before = await readTop(panel);
    await control.click();
    await panel.page.waitForTimeout(300); // what opens is drawn in later frames
    expect(await readTop(panel)).toBe(before);
  }
});

test('a question stands at the top before and after its answer arrives', async () => {
  const {panel} = await openBook();
  await panel.open();
  await panel.ask('What is the capture point?');
  await panel.send('What is the zero moment point?');
  const readOffset = (): Promise<number> =>
    panel.turn.evaluate(
      (turn) =>
        turn.getBoundingClientRect().top -
        (turn.closest('[role="region"]') as Element).getBoundingClientRect().top,
    );
  await expect.poll(() => panel.turns.count()).toBe(2);
  await expect.poll(readOffset).toBeLessThan(40);
  await panel.waitForEnd();
  expect(await readOffset()).toBeLessThan(40);
  expect(await readOffset()).toBeGreaterThanOrEqual(0);
});
