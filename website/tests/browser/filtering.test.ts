import {expect, test} from 'vitest';

import {openBook} from './harness/reader';

const QUESTION = 'What is the zero moment point?';

test('"This page" asks only the page that is open', async () => {
  const {panel, sent} = await openBook({path: 'docs/glossary'});
  await panel.open();
  await panel.chooseScope('This page');
  expect(await panel.ask(QUESTION)).toBe('done');
  expect(sent[0]).toMatchObject({filters: {doc_paths: ['glossary.md']}});
  const links = await panel.citations.evaluateAll((all) =>
    all.map((link) => (link as HTMLAnchorElement).pathname),
  );
  expect(links.length).toBeGreaterThan(0);
  expect(links.filter((path) => !path.endsWith('docs/glossary'))).toEqual([]);
});

test('"This page" follows the reader to the next page', async () => {
  const {page, panel, sent} = await openBook({path: 'docs/glossary'});
  await panel.open();
  await panel.chooseScope('This page');
  const first = page.url();
  await page.locator('.navbar__item', {hasText: 'Syllabus'}).first().click();
  await page.waitForURL((url) => url.href !== first);
  // The question waits until the service has named the new page.
  expect(await panel.root.getByRole('combobox').inputValue()).toBe('page');
  await panel.ask('How is the course graded?');
  expect(sent[0]).toMatchObject({filters: {doc_paths: ['syllabus.md']}});
});

test('a page without the answer offers to search the whole book', async () => {
  const {panel, sent} = await openBook({path: 'docs/intro'});
  await panel.open();
  await panel.chooseScope('This page');
  expect(await panel.ask(QUESTION)).toBe('refused');
  await panel.turn.getByRole('button', {name: /whole book/i}).click();
  await expect.poll(() => sent.length).toBe(2);
  await panel.waitForStatus('done');
  expect(sent[1]?.filters).toBeUndefined();
});
