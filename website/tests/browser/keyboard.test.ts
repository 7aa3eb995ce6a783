import type {Page} from 'playwright-core';
import {expect, test} from 'vitest';

import {waitForHighlight} from './harness/highlights';
import {openBook, PAGE} from './harness/reader';

/** Presses the shortcut that the button names for assistive technology. */
async function pressShortcut(page: Page): Promise<void> {
  const shortcuts = await page
    .getByRole('button', {name: 'Ask RoboTutor', exact: true})
    .getAttribute('aria-keyshortcuts');
  // Playwright names the letter of a key in lower case.
  const first = shortcuts?.split(' ')[0]?.replace(/[A-Z]$/, (letter) => letter.toLowerCase());
  expect(first).toBeTruthy();
  await page.keyboard.press(first as string);
}

/** Returns the name of the focused element. */
async function readFocus(page: Page): Promise<string> {
  return page.evaluate(() => {
    const focused = document.activeElement;
    return focused?.getAttribute('aria-label') ?? (focused as HTMLElement | null)?.innerText ?? '';
  });
}

test('a reader can ask and follow a citation with the keyboard only', async () => {
  const {page, panel} = await openBook({path: 'docs/glossary'});
  await pressShortcut(page);
  await panel.field.waitFor();
  await expect.poll(() => panel.field.evaluate((node) => node === document.activeElement)).toBe(true);
  await page.keyboard.type('What is the zero moment point?');
  await page.keyboard.press('Enter');
  await panel.waitForStatus('done');
  // The field comes after the answer. The way back to the first citation is found with Shift+Tab.
  let isCitation = false;
  for (let steps = 0; steps < 60 && !isCitation; steps += 1) {
    await page.keyboard.press('Shift+Tab');
    isCitation = await page.evaluate(
      () => document.activeElement?.matches('[data-robotutor="citation"]') ?? false,
    );
  }
  expect(isCitation).toBe(true);
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.pathname.endsWith(PAGE));
  // The reader goes on at the passage, and not in the panel.
  await waitForHighlight(page);
  await expect
    .poll(() => page.evaluate(() => document.activeElement?.textContent ?? ''))
    .toContain('The ZMP is the point on the ground');
});

test('Escape closes the panel and returns the focus to the button', async () => {
  const {page, panel} = await openBook();
  await panel.launcher.focus();
  await page.keyboard.press('Enter');
  await panel.field.waitFor();
  await page.keyboard.press('Escape');
  await panel.root.waitFor({state: 'hidden'});
  await expect.poll(() => readFocus(page)).toContain('Ask RoboTutor');
});

test('a pressed suggestion keeps the focus in the panel', async () => {
  const {page, panel} = await openBook({path: 'docs/glossary'});
  await panel.open();
  await panel.root.locator('button', {hasText: '?'}).first().press('Enter');
  await panel.turn.waitFor();
  await expect
    .poll(() => panel.root.evaluate((element) => element.contains(document.activeElement)))
    .toBe(true);
  await page.keyboard.press('Escape');
  await panel.launcher.waitFor();
});

test('Close returns the focus to the button', async () => {
  const {page, panel} = await openBook();
  await panel.open();
  await panel.button('Close').click();
  await panel.root.waitFor({state: 'hidden'});
  await expect.poll(() => readFocus(page)).toContain('Ask RoboTutor');
});

test('the focus is visible on every control of the panel', async () => {
  const {page, panel} = await openBook();
  await panel.open();
  await panel.ask('What is the zero moment point?');
  await panel.field.focus();
  const invisible: string[] = [];
  const seen = new Set<string>();
  for (let steps = 0; steps < 40; steps += 1) {
    await page.keyboard.press('Shift+Tab');
    const focused = await page.evaluate(() => {
      const node = document.activeElement as HTMLElement;
      const style = getComputedStyle(node);
      const isMarked = style.outlineStyle !== 'none' || style.boxShadow !== 'none';
      const isInside = Boolean(node.closest('[data-robotutor="panel"]'));
      return {isInside, isMarked, html: node.outerHTML.slice(0, 120)};
    });
    if (!focused.isInside) {
      break;
    }
    seen.add(focused.html);
    if (!focused.isMarked) {
      invisible.push(focused.html);
    }
  }
  expect(seen.size).toBeGreaterThan(4);
  expect(invisible).toEqual([]);
});

test('the shortcut is ignored while the reader types in another field', async () => {
  const {page, panel} = await openBook();
  await page.evaluate(() => {
    const input = document.createElement('input');
    input.id = 'other-field';
    document.body.prepend(input);
    input.focus();
  });
  await page.keyboard.type('a/b?i');
  expect(await page.locator('#other-field').inputValue()).toBe('a/b?i');
  expect(await panel.root.isVisible()).toBe(false);
});
