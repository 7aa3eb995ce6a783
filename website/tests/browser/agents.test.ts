import {expect, inject, test} from 'vitest';

import {openBook, PAGE} from './harness/reader';

async function read(path: string): Promise<{status: number; type: string; text: string}> {
  const reply = await fetch(inject('quoting').book + path);
  const type = reply.headers.get('content-type') ?? '';
  return {status: reply.status, type, text: await reply.text()};
}

test('llms.txt lists the pages in the order of the book', async () => {
  const {status, type, text} = await read('llms.txt');
  expect(status).toBe(200);
  expect(type).toMatch(/^text\/(plain|markdown)/);
  expect(text).toMatch(/^# /);
  const places = ['docs/intro', 'docs/module-1', 'docs/module-4', 'docs/glossary'].map((path) =>
    text.indexOf(path),
  );
  expect(places).not.toContain(-1);
  expect(places).toEqual([...places].sort((one, other) => one - other));
});

test('every page that llms.txt lists is served as Markdown without MDX', async () => {
  const {text} = await read('llms.txt');
  const addresses = [...text.matchAll(/\]\((\S+?\.md)\)/g)].map(([, address]) => address as string);
  expect(addresses.length).toBeGreaterThan(100);
  const faults: string[] = [];
  const {book} = inject('quoting');
  for (const address of addresses) {
    const path = new URL(address, book).pathname;
    const reply = await fetch(new URL(path, book));
    const page = (await reply.text()).replace(/```[\s\S]*?```/g, '');
    if (!reply.ok || /^import \w+ from|^:::|<TabItem|<Tabs/m.test(page)) {
      faults.push(path);
    }
  }
  expect(faults).toEqual([]);
});

test('llms-full.txt has the text of the book', async () => {
  const {status, text} = await read('llms-full.txt');
  expect(status).toBe(200);
  expect(text).toContain('The ZMP is the point on the ground');
});

test('a page is served as Markdown', async () => {
  const {status, text} = await read(`${PAGE}.md`);
  expect(status).toBe(200);
  expect(text).toContain('# Balance, ZMP and Capture Point');
  expect(text).toContain(String.raw`p_x=x-\frac{z_c}{g}\,\ddot x`);
});

test('the search box finds a section', async () => {
  const {page} = await openBook({path: 'docs/intro'});
  const box = page.getByRole('combobox', {name: 'Search'}).or(page.getByPlaceholder('Search'));
  await box.first().click();
  await box.first().pressSequentially('capture point', {delay: 20});
  await page.locator('[class*="dropdownMenu"] [class*="hitTitle"]').first().waitFor();
  await box.first().press('ArrowDown');
  await box.first().press('Enter');
  await page.waitForURL((url) => !url.pathname.endsWith('docs/intro'));
  // The address changes before the page does.
  await expect
    .poll(async () => (await page.locator('article').first().innerText()).toLowerCase())
    .toContain('capture');
});

test('the search offers to ask the panel', async () => {
  const {page, panel, sent} = await openBook({path: 'docs/intro'});
  const box = page.getByPlaceholder('Search').first();
  await box.click();
  await box.pressSequentially('capture point', {delay: 20});
  await page.getByRole('link', {name: 'Ask RoboTutor: “capture point”'}).click();
  await panel.field.waitFor();
  await expect.poll(() => sent.length).toBe(1);
  expect(sent[0]?.question).toBe('capture point');
  await panel.waitForEnd();
  expect(new URL(page.url()).search).toBe('');
});

test('the menu of a page leads to its Markdown and to other programs', async () => {
  const {page} = await openBook();
  await page.getByRole('button', {name: 'Other ways to use this page'}).click();
  const file = `${inject('quoting').book}${PAGE}.md`;
  const view = page.getByRole('link', {name: 'View as Markdown'});
  expect(new URL((await view.getAttribute('href')) ?? '', page.url()).href).toBe(file);
  const chat = await page.getByRole('link', {name: 'Open in Claude'}).getAttribute('href');
  expect(decodeURIComponent(chat ?? '')).toContain(file);
  const editor = await page.getByRole('link', {name: 'Connect to VS Code'}).getAttribute('href');
  expect(decodeURIComponent(editor ?? '')).toContain(`"${inject('quoting').origin}/mcp"`);
  await page.keyboard.press('Escape');
  await view.waitFor({state: 'hidden'});
});
