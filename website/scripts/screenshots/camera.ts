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

/** A blinking cursor and movements would change the picture from run to run. */
const STILL =
  '*, ::before, ::after {animation: none !important; caret-color: transparent !important}';

/** Writes a picture of the window as WebP; fails if it is too large for the repository. */
export async function take(page: Page, name: string): Promise<void> {
  const style = await page.addStyleTag({content: STILL});
  await page.waitForLoadState('networkidle').catch(() => undefined);
  await page.waitForTimeout(300); // the last frame of what scrolls into view
  const client = await page.context().newCDPSession(page);
  const {data} = await client.send('Page.captureScreenshot', {format: 'webp', quality: 75});
  await client.detach();
  await style.evaluate((element) => (element as Element).remove());
  const picture = Buffer.from(data, 'base64');
  expect(picture.length, `bytes of ${name}.webp`).toBeLessThan(MOST_BYTES);
  mkdirSync(FOLDER, {recursive: true});
  writeFileSync(join(FOLDER, `${name}.webp`), picture);
}
