import type {Panel} from './harness/panel';
import {expect, test} from 'vitest';

import {setScript} from './harness/model';
import {openBook} from './harness/reader';
import {findModel, findWriting} from './harness/scripted';

/** Returns the brightness of the panel's background, from 0 (black) to 255. */
async function readBrightness(panel: Panel): Promise<number> {
  return panel.root.evaluate((node) => {
    const channels = getComputedStyle(node).backgroundColor.match(/[\d.]+/g) ?? [];
    return (Number(channels[0]) + Number(channels[1]) + Number(channels[2])) / 3;
  });
}

test('the panel follows the color mode of the site', async () => {
  const {page, panel} = await openBook({context: {colorScheme: 'light'}});
  await panel.open();
  expect(await readBrightness(panel)).toBeGreaterThan(200);
  await page.evaluate(() => document.documentElement.setAttribute('data-theme', 'dark'));
  await expect.poll(() => readBrightness(panel)).toBeLessThan(80);
});

test('nothing moves for readers who want reduced motion', async () => {
  const {page, panel} = await openBook({context: {reducedMotion: 'reduce'}});
  await panel.open();
  await panel.ask('What is the zero moment point?');
  const moving = await page.evaluate(() =>
    document
      .getAnimations()
      .filter((animation) => {
        const target = (animation.effect as KeyframeEffect | null)?.target;
        return target?.closest('[data-robotutor]');
      })
      .map((animation) => animation.effect?.getComputedTiming().duration),
  );
  expect(moving.filter((duration) => Number(duration) > 1)).toEqual([]);
});

test('a citation does not scroll smoothly for readers who want reduced motion', async () => {
  const {page, panel} = await openBook({
    context: {reducedMotion: 'reduce'},
    before: () => {
      const smooth: unknown[] = [];
      const scroll = Element.prototype.scrollIntoView;
      Element.prototype.scrollIntoView = function note(options) {
        smooth.push(typeof options === 'object' ? options.behavior : undefined);
        scroll.call(this, options);
      };
      Object.assign(window, {smooth});
    },
  });
  await panel.open();
  await panel.ask('What is the zero moment point?');
  await panel.citations.first().click();
  await expect.poll(() => page.url()).toContain('#');
  const used = await page.evaluate(() => (window as unknown as {smooth: unknown[]}).smooth);
  expect(used).not.toContain('smooth');
});

test('a question and an answer from right to left are aligned so', async () => {
  const pieces = ['נקודת המומנט האפס נמצאת על הקרקע [1].'];
  await setScript(findModel(), {pieces});
  const {panel} = await openBook({book: findWriting().book});
  await panel.open();
  for (const [question, words] of [
    ['What is the zero moment point?', 'נקודת המומנט'],
    ['מה זה?', 'מה זה'],
  ] as const) {
    await panel.ask(question);
    const text = panel.turn.getByText(words).first();
    // What draws Markdown replaces the text once it is loaded.
    await expect
      .poll(() => text.evaluate((node) => getComputedStyle(node).direction))
      .toBe('rtl');
  }
  // The panel itself keeps the direction of the page.
  expect(await panel.root.evaluate((node) => getComputedStyle(node).direction)).toBe('ltr');
  // Questions of both directions are at the same side of it.
  const ends = await panel.turns.evaluateAll((turns) =>
    turns.map((turn) => Math.round(turn.firstElementChild?.getBoundingClientRect().right ?? 0)),
  );
  expect(new Set(ends).size).toBe(1);
});

test('formulas of the book are readable in forced colors and on a page from right to left', async () => {
  const {page} = await openBook({context: {forcedColors: 'active'}});
  const formula = page.locator('article p .katex').first();
  const [text, sign] = await formula.evaluate((node) =>
    [node.closest('p') as Element, node].map((each) => getComputedStyle(each).color),
  );
  expect(sign).toBe(text);
  await page.evaluate(() => document.documentElement.setAttribute('dir', 'rtl'));
  expect(await formula.evaluate((node) => getComputedStyle(node).direction)).toBe('ltr');
});

test('printing shows the book only', async () => {
  const {page, panel} = await openBook();
  await panel.open();
  await page.emulateMedia({media: 'print'});
  expect(await panel.root.isVisible()).toBe(false);
  expect(await panel.launcher.isVisible()).toBe(false);
  expect(await page.locator('.theme-doc-sidebar-container').isVisible()).toBe(false);
  const article = await page.locator('article').first().boundingBox();
  expect(article?.width).toBeGreaterThan(600);
});

test('the open panel does not cover the text of the page', async () => {
  const {page, panel} = await openBook({context: {viewport: {width: 1440, height: 900}}});
  await panel.open();
  const text = await page.locator('article p').first().boundingBox();
  const side = await panel.root.boundingBox();
  expect((text?.x ?? 0) + (text?.width ?? 0)).toBeLessThanOrEqual((side?.x ?? 0) + 1);
});

test('the button covers nothing that can be clicked at the end of a page', async () => {
  const {page, panel} = await openBook();
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  const box = await panel.launcher.boundingBox();
  const covered = await page.evaluate((button) => {
    const links = [...document.querySelectorAll('.pagination-nav a, footer a')];
    return links
      .map((link) => link.getBoundingClientRect())
      .filter(
        (link) =>
          link.left < button.x + button.width &&
          link.right > button.x &&
          link.top < button.y + button.height &&
          link.bottom > button.y,
      ).length;
  }, box as NonNullable<typeof box>);
  expect(covered).toBe(0);
});
