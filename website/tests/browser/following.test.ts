import type {Panel} from './harness/panel';
import {expect, test} from 'vitest';

import {openBook} from './harness/reader';

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
