/** Takes pictures that are small enough for the repository. */

import {mkdirSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import type {Page} from 'playwright-core';
import {expect} from 'vitest';

import {REPOSITORY} from '../../tests/browser/harness/site';

const FOLDER = join(REPOSITORY, 'docs/assets/robotutor');
const MOST_BYTES = 120_000;

/** Options of a window that fits the pages of the documentation. */
export const WINDOW = {viewport: {width: 1200, height: 750}};

/** Writes a picture of the window; fails if it is too large for the repository. */
export async function take(page: Page, name: string): Promise<void> {
  // A blinking cursor and images that still load would change the picture from run to run.
  await page.waitForLoadState('networkidle').catch(() => undefined);
  const picture = await page.screenshot({animations: 'disabled', caret: 'hide'});
  expect(picture.length, `bytes of ${name}.png`).toBeLessThan(MOST_BYTES);
  mkdirSync(FOLDER, {recursive: true});
  writeFileSync(join(FOLDER, `${name}.png`), picture);
}
