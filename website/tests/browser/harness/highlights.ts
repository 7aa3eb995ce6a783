/** The highlight that shows where the book says something. */

import type {Page} from 'playwright-core';
import {expect} from 'vitest';

/** The highlighted part of a page. */
export interface Highlighted {
  /** The highlighted text, without blanks at its ends. */
  text: string;
  /** If any of it is inside the window. */
  isVisible: boolean;
  /** Pixels from the top of the window to its first line. */
  top: number;
}

/** Waits until something is highlighted and inside the window, and returns it. */
export async function waitForHighlight(page: Page): Promise<Highlighted> {
  await expect
    .poll(async () => (await readHighlight(page)).isVisible, {timeout: 45_000})
    .toBe(true);
  return readHighlight(page);
}

/** Returns what is highlighted; empty if nothing is. */
export async function readHighlight(page: Page): Promise<Highlighted> {
  return page.evaluate(() => {
    const ranges = [...(CSS.highlights.get('robotutor') ?? [])].map((abstract) => {
      const range = document.createRange();
      range.setStart(abstract.startContainer, abstract.startOffset);
      range.setEnd(abstract.endContainer, abstract.endOffset);
      return range;
    });
    const boxes = ranges.flatMap((range) => [...range.getClientRects()]);
    return {
      text: ranges.map(String).join(' ').trim(),
      top: Math.min(...boxes.filter((box) => box.width > 0).map((box) => box.top)),
      isVisible: boxes.some((box) => box.width > 0 && box.top >= 0 && box.bottom <= innerHeight),
    };
  });
}
