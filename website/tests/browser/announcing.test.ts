import type {Page} from 'playwright-core';
import {expect, test} from 'vitest';

import {listSentences, readState, setScript} from './harness/model';
import {openBook} from './harness/reader';
import {findModel, findWriting} from './harness/scripted';

/** Notes every change of a live region, like a screen reader would announce it. */
function noteAnnouncements(): void {
  const announced: string[] = [];
  Object.assign(window, {announced});
  const selector = '[aria-live]:not([aria-live="off"]), [role="status"], [role="alert"], [role="log"]';
  const observer = new MutationObserver((changes) => {
    const regions = new Set<Element>();
    for (const change of changes) {
      const node = change.target instanceof Element ? change.target : change.target.parentElement;
      const region = node?.closest(selector);
      if (region) {
        regions.add(region);
      }
    }
    for (const region of regions) {
      const text = (region.textContent ?? '').trim();
      if (text && text !== announced.at(-1)) {
        announced.push(text);
      }
    }
  });
  observer.observe(document, {childList: true, characterData: true, subtree: true});
}

async function readAnnouncements(page: Page): Promise<string[]> {
  return page.evaluate(() => (window as unknown as {announced: string[]}).announced);
}

test('an answer is announced once, and not word by word', async () => {
  await setScript(findModel(), {pieces: 6, pauseMs: 80});
  const {page, panel} = await openBook({book: findWriting().book, before: noteAnnouncements});
  await panel.open();
  expect(await panel.ask('What is the zero moment point?')).toBe('done');
  const {prompts} = await readState(findModel());
  const written = listSentences(prompts.at(-1) ?? '').slice(0, 6);
  expect(written).toHaveLength(6);
  await expect.poll(async () => (await readAnnouncements(page)).join('\n')).toContain(written[5]);
  const announced = await readAnnouncements(page);
  for (const sentence of written) {
    expect(announced.filter((text) => text.includes(sentence))).toHaveLength(1);
  }
  // Besides the answer: that it is being looked for.
  expect(announced.length).toBeLessThanOrEqual(3);
});

test('a jump on a phone is announced outside of the closed sheet, each time', async () => {
  const phone = {viewport: {width: 360, height: 640}, hasTouch: true, isMobile: true};
  const {page, panel} = await openBook({context: phone, path: 'docs/glossary'});
  await panel.open();
  await panel.ask('What is the zero moment point?');
  const region = page.locator('[data-robotutor="host"] > [role="status"]');
  for (let times = 0; times < 2; times += 1) {
    const before = await region.locator('span').elementHandle({timeout: 1}).catch(() => null);
    await panel.citations.first().click();
    await panel.root.waitFor({state: 'hidden'});
    await expect
      .poll(() => region.locator('span').evaluate((said, old) => said !== old, before))
      .toBe(true);
    expect(await region.innerText()).toBe('The passage is highlighted in the page.');
    await panel.open();
  }
});

test('a refusal and a problem are announced', async () => {
  const {context, page, panel} = await openBook({
    before: noteAnnouncements,
    expected: [/Failed to load resource/, /ERR_INTERNET/],
  });
  await panel.open();
  await panel.ask('What is a good recipe for tomato soup?');
  await expect
    .poll(async () => (await readAnnouncements(page)).join('\n'))
    .toContain('The book does not cover this.');
  await context.setOffline(true);
  await panel.ask('What is the zero moment point?');
  await expect
    .poll(async () => (await readAnnouncements(page)).join('\n'))
    .toContain('RoboTutor is not available right now.');
});
