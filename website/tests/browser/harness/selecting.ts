/** Selections that a reader makes with the mouse. */

import type {Locator, Page} from 'playwright-core';

/**
 * Drags the mouse over text, from the start of one element to the end of another.
 *
 * @param page The page.
 * @param from The element in which the drag starts.
 * @param to The element in which it ends. Default: the same element.
 */
export async function drag(page: Page, from: Locator, to: Locator = from): Promise<void> {
  await from.scrollIntoViewIfNeeded();
  const [start, end] = [await findText(from, 'start'), await findText(to, 'end')];
  await page.mouse.move(start.x, start.y);
  await page.mouse.down();
  await page.mouse.move((start.x + end.x) / 2, (start.y + end.y) / 2, {steps: 3});
  await page.mouse.move(end.x, end.y, {steps: 3});
  await page.mouse.up();
}

/** Returns the control that appears beside a selection. */
export function findControl(page: Page): Locator {
  return page.getByRole('button', {name: 'Ask about this', exact: true});
}

/** Returns a point just inside the first or behind the last character that an element shows. */
async function findText(element: Locator, side: 'start' | 'end'): Promise<{x: number; y: number}> {
  return element.evaluate((node, edge) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    const boxes = [...range.getClientRects()].filter((box) => box.width > 1 && box.height > 1);
    const box = edge === 'start' ? boxes[0] : boxes.at(-1);
    if (!box) {
      throw new Error('The element shows no text.');
    }
    const x = edge === 'start' ? box.left + 1 : box.right - 1;
    return {x, y: box.top + box.height / 2};
  }, side);
}
