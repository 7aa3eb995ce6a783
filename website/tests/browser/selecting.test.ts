import type {Locator, Page} from 'playwright-core';
import {expect, test} from 'vitest';

import {openBook, PAGE, type Reader} from './harness/reader';
import {drag, findControl} from './harness/selecting';

/** Selects text, asks about it and returns the body of the request. */
async function askAbout(reader: Reader, from: Locator, to?: Locator) {
  await drag(reader.page, from, to);
  await findControl(reader.page).click();
  await reader.panel.field.waitFor();
  await reader.panel.send('What does this mean?');
  await expect.poll(() => reader.sent.length).toBe(1);
  await reader.panel.waitForEnd();
  const body = reader.sent[0] as Record<string, string>;
  expect(body.mode).toBe('selected_text_only');
  return body as {selected_text: string; source_url: string; source_section: string};
}

function find(page: Page, text: string): Locator {
  return page.locator('article').getByText(text).first();
}

test('selected prose is sent with the place of the heading above it', async () => {
  const reader = await openBook();
  const body = await askAbout(reader, find(reader.page, 'Static balance is the special case'));
  expect(body.selected_text).toMatch(/^Static balance is the special case.*nor sufficient\.$/);
  expect(new URL(body.source_url, reader.book).href).toBe(
    `${reader.book}${PAGE}#static-balance-as-a-special-case`,
  );
  expect(body.source_section).toBe('Static balance as a special case');
});

test('formulas in a selection are sent as TeX, once each', async () => {
  const reader = await openBook();
  const body = await askAbout(reader, find(reader.page, 'The ZMP is the point on the ground'));
  expect(body.selected_text).toContain('$z_c$');
  expect(body.selected_text.match(/z_c/g)).toHaveLength(1);
});

test('a formula of its own line that is half selected is sent whole', async () => {
  const reader = await openBook();
  const formula = reader.page.locator('article .katex-display').first();
  // From one sign of the formula to another, both of its left half.
  const signs = formula.locator('.katex-html .mord.mathnormal');
  const body = await askAbout(reader, signs.first(), signs.nth(4));
  expect(body.selected_text).toContain(String.raw`p_x=x-\frac{z_c}{g}\,\ddot x`);
  expect(body.selected_text).toContain(String.raw`p_y=y-\frac{z_c}{g}\,\ddot y`);
});

test('selected code keeps its lines and its language', async () => {
  const reader = await openBook();
  const lines = reader.page.locator('article pre').first().locator('.token-line');
  const body = await askAbout(reader, lines.nth(6), lines.nth(8));
  expect(body.selected_text).toMatch(/^```python\b/);
  expect(body.selected_text).toContain(
    'def push(impulse, x=0.0, duration=3.0):\n    """Return (outcome',
  );
  expect(body.selected_text).toMatch(/```$/);
});

test('a selected table keeps its rows', async () => {
  const reader = await openBook();
  const rows = reader.page.locator('article table').first().locator('tbody tr');
  const body = await askAbout(reader, rows.nth(0).locator('td').nth(0), rows.nth(2).locator('td').nth(2));
  const sent = body.selected_text.split('\n').filter((line) => line.includes('|'));
  expect(sent.some((row) => /Compare with\s*\|\s*support polygon/.test(row))).toBe(true);
  expect(sent.length).toBeGreaterThanOrEqual(3);
});

test('a selection across sections has the place where it starts', async () => {
  const reader = await openBook();
  const body = await askAbout(
    reader,
    find(reader.page, 'Static balance is the special case'),
    find(reader.page, 'The ZMP is the point on the ground'),
  );
  expect(body.source_section).toBe('Static balance as a special case');
  expect(body.selected_text).toContain('nor sufficient.\n');
  expect(body.selected_text).toMatch(/The zero moment point\n/);
});

test('a chip names the size of the selection and can be removed', async () => {
  const {page, panel, sent} = await openBook();
  await drag(page, find(page, 'Static balance is the special case'));
  await findControl(page).click();
  await panel.waitForText(/From your selection \(\d+ words\)/);
  await drag(page, page.locator('article pre').first().locator('.token-line').nth(6));
  await findControl(page).click();
  await panel.waitForText('From your selection (code)');
  await panel.root.getByRole('button', {name: /remove/i}).click();
  await panel.ask('What is the zero moment point?');
  expect(sent[0]).toMatchObject({mode: 'normal'});
  expect(sent[0]?.selected_text).toBeUndefined();
});

test('text outside an article has no control', async () => {
  const {page} = await openBook();
  await drag(page, page.locator('nav.menu a').nth(1), page.locator('nav.menu a').nth(2));
  await page.waitForTimeout(600);
  expect(await findControl(page).count()).toBe(0);
});

test('the first selection of a page has the control', async () => {
  const {page} = await openBook();
  // The code that reads selections is loaded by the selection itself.
  expect(await page.locator('[data-robotutor="host"]').count()).toBe(0);
  await find(page, 'Static balance is the special case').dblclick({position: {x: 20, y: 10}});
  await findControl(page).waitFor();
});

test('a selection with a finger has a control that can be tapped', async () => {
  const {page, panel} = await openBook({
    context: {viewport: {width: 390, height: 844}, hasTouch: true, isMobile: true},
  });
  const text = find(page, 'Static balance is the special case');
  await text.tap();
  // The handles of a phone change the selection without any other event.
  await text.evaluate((node) => getSelection()?.selectAllChildren(node));
  await findControl(page).tap();
  await panel.waitForText(/From your selection \(\d+ words\)/);
  expect(await panel.root.getAttribute('role')).toBe('dialog');
});

test('a selection with the keyboard has the control, too', async () => {
  const {page} = await openBook();
  const text = find(page, 'Static balance is the special case');
  // The keys scroll to what they select, which the script below does not.
  await text.scrollIntoViewIfNeeded();
  await text.evaluate((node) => getSelection()?.setBaseAndExtent(node, 0, node, 0));
  await page.evaluate(() => getSelection()?.modify('extend', 'forward', 'paragraph'));
  await findControl(page).waitFor();
});

test('a selection that is given up has no control', async () => {
  const {page} = await openBook();
  await drag(page, find(page, 'Static balance is the special case'));
  await findControl(page).waitFor();
  await page.evaluate(() => getSelection()?.removeAllRanges());
  await findControl(page).waitFor({state: 'detached'});
});

test('without a model, a selection is explained and not repeated', async () => {
  const reader = await openBook();
  const {page, panel} = reader;
  await askAbout(reader, find(page, 'The ZMP is the point on the ground'));
  const around = panel.turn.locator('[data-robotutor="about-selection"]');
  await around.getByText('The section around it').waitFor();
  await around.getByText('Zero-moment point: the point on the ground').waitFor();
  expect(await panel.turn.locator('figure').count()).toBe(0);
  // The question shows the selected formula as the page does.
  await panel.turn.locator('blockquote .katex').first().waitFor();
  await around.getByRole('button', {name: 'Search the whole book'}).click();
  await expect.poll(() => reader.sent.length).toBe(2);
  expect(reader.sent[1]).toMatchObject({mode: 'normal', question: 'What does this mean?'});
  await panel.waitForEnd();
});

test('the control beside a selection does not cover the heading above it', async () => {
  const {page} = await openBook();
  const paragraph = find(page, 'Static balance is the special case');
  await drag(page, paragraph);
  const [control, text] = [await findControl(page).boundingBox(), await paragraph.boundingBox()];
  expect(control?.y).toBeGreaterThan(text?.y ?? Infinity);
});
