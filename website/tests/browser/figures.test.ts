/** What an answer shows besides text: images, diagrams and the tab that a citation names. */

import type {Page} from 'playwright-core';
import {expect, test} from 'vitest';

import {waitForHighlight} from './harness/highlights';
import {openBook, PAGE} from './harness/reader';

const QUESTION = 'What is the zero moment point?';
const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGMQUDAAAACkAGE0Zn1yAAAAAElFTkSuQmCC',
  'base64',
);

/** Adds figures to the first passage of each answer. The book of the tests has no images. */
async function addFigures(page: Page, figures: object[]): Promise<void> {
  await page.route('**/v1/answers', async (route) => {
    const response = await route.fetch();
    const body = (await response.text()).replace(/^data: (.*"passages".*)$/m, (_, json: string) => {
      const done = JSON.parse(json) as {passages: {figures: object[]}[]};
      done.passages[0]!.figures = figures;
      return `data: ${JSON.stringify(done)}`;
    });
    await route.fulfill({response, body});
  });
}

test('an image that the build renamed is shown beside its passage, and no image of another host', async () => {
  const {page, panel} = await openBook({path: 'docs/glossary', context: {}});
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  const image = {kind: 'image', text: 'A foot', caption: 'Figure 1: the foot', line: 1};
  await addFigures(page, [
    {...image, address: '@site/docs/module-4/foot.png'},
    {...image, address: 'https://evil.example/foot.png', text: 'Evil'},
  ]);
  await page.route(`**/${PAGE}`, async (route) => {
    const response = await route.fetch();
    const image = '<img alt="A foot" src="/assets/images/foot-0a1b2c3d4e5f.png">';
    await route.fulfill({response, body: (await response.text()).replace('</article>', `${image}</article>`)});
  });
  await page.route('**/assets/images/foot-*.png', (route) =>
    route.fulfill({contentType: 'image/png', body: PIXEL}),
  );
  await panel.open();
  expect(await panel.ask(QUESTION)).toBe('done');
  // The figure is at the end of the passage, which is cut at first.
  await panel.turn.getByRole('button', {name: 'Show more'}).first().click();
  const shown = panel.turn.getByRole('img', {name: 'A foot'});
  await expect
    .poll(() => shown.evaluate((found) => (found as HTMLImageElement).naturalWidth))
    .toBe(1);
  await panel.waitForText('Figure 1: the foot');
  expect(await panel.turn.getByRole('img', {name: 'Evil'}).count()).toBe(0);
  expect(asked.filter((url) => url.includes('evil.example'))).toEqual([]);
});

test('a diagram of a passage is drawn as on its page', async () => {
  const {panel} = await openBook({path: 'docs/glossary'});
  await panel.open();
  await panel.ask('How does the latency chain look, drawn as a sequence?');
  const diagram = panel.turn.getByRole('region', {name: 'Diagram'}).first();
  await diagram.locator('svg').waitFor({state: 'attached'});
  expect(await panel.turn.getByText('sequenceDiagram').count()).toBe(0);
});

test('a citation opens the tab that it names', async () => {
  const {page, panel} = await openBook({path: 'docs/glossary'});
  await panel.open();
  await panel.ask('What does the hip strategy do with the trunk when the robot is pushed forward?');
  const place = panel.turn.getByRole('link', {name: /Hip$/}).first();
  await place.click();
  await page.waitForURL((url) => url.pathname.endsWith(PAGE));
  const tab = page.getByRole('tab', {name: 'Hip'});
  await expect.poll(() => tab.getAttribute('aria-selected')).toBe('true');
  expect((await waitForHighlight(page)).text).toContain('Rotate the trunk forward quickly');
});
