import {expect, test} from 'vitest';

import {readHighlight, waitForHighlight} from './harness/highlights';
import {setScript} from './harness/model';
import {openBook, PAGE} from './harness/reader';
import {findModel, findWriting} from './harness/scripted';

const QUESTION = 'What is the zero moment point?';
const SENTENCE = 'The ZMP is the point on the ground where the moment of gravity';

test('a citation on another page opens it and highlights the sentence', async () => {
  const {page, panel} = await openBook({path: 'docs/glossary'});
  await panel.open();
  await panel.ask(QUESTION);
  await page.evaluate(() => Object.assign(window, {sameDocument: true}));
  await panel.citations.first().click();
  await page.waitForURL((url) => url.pathname.endsWith(PAGE));
  const highlight = await waitForHighlight(page);
  expect(highlight.text).toContain(SENTENCE);
  expect(page.url()).toContain('#the-zero-moment-point');
  // The site is one document. A full page load would end a conversation that is being written.
  expect(await page.evaluate(() => 'sameDocument' in window)).toBe(true);
  expect(await panel.turns.count()).toBe(1);
});

test('a citation on the same page scrolls to the sentence', async () => {
  const {page, panel} = await openBook();
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  await panel.open();
  await panel.ask(QUESTION);
  await panel.citations.first().click();
  expect((await waitForHighlight(page)).text).toContain(SENTENCE);
});

test('a second click on a citation scrolls to the sentence again', async () => {
  const {page, panel} = await openBook();
  await panel.open();
  await panel.ask(QUESTION);
  await panel.citations.first().click();
  await waitForHighlight(page);
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  await expect.poll(async () => (await readHighlight(page)).isVisible).toBe(false);
  await panel.citations.first().click();
  await waitForHighlight(page);
});

test('a citation opened in a new tab highlights after the page load', async () => {
  const {context, page, panel} = await openBook({path: 'docs/glossary'});
  await panel.open();
  await panel.ask(QUESTION);
  const opened = context.waitForEvent('page');
  await panel.citations.first().click({modifiers: ['Control']});
  const tab = await opened;
  await tab.waitForLoadState();
  expect(tab.url()).toContain(`${PAGE}#the-zero-moment-point`);
  expect((await waitForHighlight(tab)).text).toContain('The ZMP is the point on the ground');
  expect(page.url()).toContain('docs/glossary');
});

test('the anchor of a citation works without the panel', async () => {
  const {page, panel, book} = await openBook();
  await panel.open();
  await panel.ask(QUESTION);
  const href = await panel.citations.first().getAttribute('href');
  await page.goto(new URL(href ?? '', book).href);
  const heading = page.locator('#the-zero-moment-point');
  await expect
    .poll(async () => heading.evaluate((node) => node.getBoundingClientRect().top))
    .toBeLessThan(800);
});

test('a sentence in another tab of the page is shown', async () => {
  const quote = 'Rotate the trunk forward quickly when pushed forward';
  await setScript(findModel(), {quote});
  const {page, panel} = await openBook({book: findWriting().book});
  await panel.open();
  await panel.ask('How does the hip strategy rotate the trunk when a robot is pushed forward?');
  await panel.citations.first().click();
  expect((await waitForHighlight(page)).text).toContain(quote);
  expect(await page.getByRole('tab', {name: 'Hip'}).getAttribute('aria-selected')).toBe('true');
});

test('a sentence in closed details is shown', async () => {
  const quote = 'so no step is needed. The speed limit is 0.525 m/s';
  await setScript(findModel(), {quote});
  const {page, panel} = await openBook({book: findWriting().book, path: 'docs/glossary'});
  await panel.open();
  await panel.ask('Must a robot step that moves forward with 0.40 m/s, its CoM over the ankle?');
  await panel.citations.first().click();
  expect((await waitForHighlight(page)).text).toContain('The speed limit is 0.525 m/s');
});

test('back returns to the page before the jump', async () => {
  const {page, panel} = await openBook({path: 'docs/glossary'});
  await panel.open();
  await panel.ask(QUESTION);
  await panel.citations.first().click();
  await waitForHighlight(page);
  await page.goBack();
  await page.waitForURL((url) => url.pathname.endsWith('docs/glossary'));
  expect((await readHighlight(page)).text).toBe('');
  expect(await panel.turns.count()).toBe(1);
});

test('without the highlight API the page scrolls to the heading', async () => {
  const {page, panel} = await openBook({
    path: 'docs/glossary',
    before: () => {
      Object.defineProperty(CSS, 'highlights', {value: undefined});
      Object.defineProperty(window, 'Highlight', {value: undefined});
    },
  });
  await panel.open();
  await panel.ask(QUESTION);
  await panel.citations.first().click();
  await page.waitForURL((url) => url.pathname.endsWith(PAGE));
  const heading = page.locator('#the-zero-moment-point');
  await expect
    .poll(async () => heading.evaluate((node) => node.getBoundingClientRect().top))
    .toBeLessThan(400);
});

test('the cited passage stands near a quarter of the height, its heading below the navbar', async () => {
  const {page, panel} = await openBook({path: 'docs/glossary'});
  await panel.open();
  await panel.ask(QUESTION);
  await panel.citations.first().click();
  const {top} = await waitForHighlight(page);
  const navbar = await page.locator('.navbar').evaluate((bar) => bar.getBoundingClientRect().bottom);
  const heading = await page
    .locator('#the-zero-moment-point')
    .evaluate((node) => node.getBoundingClientRect().top);
  expect(heading).toBeGreaterThan(navbar);
  expect(top).toBeGreaterThan(heading);
  expect(top).toBeLessThanOrEqual(400);
});

test('a jump into a tab shows its text and not only its label', async () => {
  const quote = 'Rotate the trunk forward quickly when pushed forward';
  await setScript(findModel(), {quote});
  const {page, panel} = await openBook({book: findWriting().book});
  await panel.open();
  await panel.ask('How does the hip strategy rotate the trunk when a robot is pushed forward?');
  await panel.citations.first().click();
  await waitForHighlight(page);
  const sentence = page.getByText(quote).first();
  await expect.poll(() => sentence.isVisible()).toBe(true);
  const box = await sentence.boundingBox();
  expect(box?.y).toBeGreaterThan(60);
  expect(box?.y).toBeLessThan(600);
});
