import type {Page} from 'playwright-core';
import {expect, test} from 'vitest';

import {waitForHighlight} from './harness/highlights';
import {openBook, PAGE} from './harness/reader';

const PHONE = {viewport: {width: 360, height: 640}, hasTouch: true, isMobile: true};

async function readOverflow(page: Page): Promise<number> {
  return page.evaluate(() => {
    const root = document.scrollingElement as Element;
    return root.scrollWidth - root.clientWidth;
  });
}

test('a phone shows a sheet that keeps the focus until Escape', async () => {
  const {page, panel} = await openBook({context: PHONE});
  await panel.open();
  expect(await panel.root.getAttribute('role')).toBe('dialog');
  expect(await panel.root.getAttribute('aria-modal')).toBe('true');
  for (let steps = 0; steps < 40; steps += 1) {
    await page.keyboard.press(steps < 20 ? 'Tab' : 'Shift+Tab');
    const isInside = await panel.root.evaluate((node) => node.contains(document.activeElement));
    expect(isInside).toBe(true);
  }
  await page.keyboard.press('Escape');
  await panel.root.waitFor({state: 'hidden'});
  await expect
    .poll(() => panel.launcher.evaluate((node) => node === document.activeElement))
    .toBe(true);
});

test('an answer fits a window of 360 pixels', async () => {
  const {page, panel} = await openBook({context: PHONE});
  await panel.open();
  await panel.ask('How do I launch a ROS 2 node in Python?');
  expect(await readOverflow(page)).toBeLessThanOrEqual(0);
  const box = await panel.root.boundingBox();
  expect(box?.x).toBeGreaterThanOrEqual(0);
  expect((box?.x ?? 0) + (box?.width ?? 999)).toBeLessThanOrEqual(360);
  const field = await panel.field.boundingBox();
  expect((field?.y ?? 999) + (field?.height ?? 0)).toBeLessThanOrEqual(640);
});

test('a citation on a phone shows the place and not the sheet', async () => {
  const {page, panel} = await openBook({context: PHONE, path: 'docs/glossary'});
  await panel.open();
  await panel.ask('What is the zero moment point?');
  await panel.citations.first().click();
  await page.waitForURL((url) => url.pathname.endsWith(PAGE));
  await panel.root.waitFor({state: 'hidden'});
  await waitForHighlight(page);
  const focused = await page.evaluate(() => document.activeElement?.textContent);
  expect(focused).toContain('The ZMP is the point on the ground');
  await page.getByRole('button', {name: 'Back to the answer'}).click();
  await panel.field.waitFor();
  expect(await panel.turns.count()).toBe(1);
  expect(await page.getByRole('button', {name: 'Back to the answer'}).count()).toBe(0);
});

test('the button leaves the text alone while a reader scrolls down', async () => {
  const {page, panel} = await openBook({context: PHONE});
  await page.mouse.wheel(0, 600);
  await expect.poll(() => panel.launcher.isVisible()).toBe(false);
  await page.mouse.wheel(0, -100);
  await expect.poll(() => panel.launcher.isVisible()).toBe(true);
});

test('a window zoomed to 200% shows everything', async () => {
  // A window of 1440 by 900 pixels at 200% has 720 by 450 CSS pixels.
  const {page, panel} = await openBook({
    context: {viewport: {width: 720, height: 450}, deviceScaleFactor: 2},
  });
  await panel.open();
  await panel.ask('What is the zero moment point?');
  expect(await readOverflow(page)).toBeLessThanOrEqual(0);
  for (const control of [panel.field, panel.button('Close')]) {
    const box = await control.boundingBox();
    expect(box?.y).toBeGreaterThanOrEqual(0);
    expect((box?.y ?? 999) + (box?.height ?? 0)).toBeLessThanOrEqual(450);
    expect((box?.x ?? 999) + (box?.width ?? 0)).toBeLessThanOrEqual(720);
  }
});
