import {inject, test} from 'vitest';

import {waitForHighlight} from '../../tests/browser/harness/highlights';
import {setScript} from '../../tests/browser/harness/model';
import {openBook} from '../../tests/browser/harness/reader';
import {findModel, findWriting} from '../../tests/browser/harness/scripted';
import {drag, findControl} from '../../tests/browser/harness/selecting';
import {startService} from '../../tests/browser/harness/service';
import {take, WINDOW} from './camera';

const QUESTION = 'What is the zero moment point?';
const ANSWER = [
  'The zero moment point is the point on the ground where the moment of gravity and inertia ',
  'forces has no horizontal component [1]. ',
  'With the CoM at constant height $z_c$ and no change of angular momentum, it is ',
  String.raw`$p_x=x-\frac{z_c}{g}\,\ddot x$ [1].` + '\n\n',
  'As long as this point is strictly inside the support polygon, the foot stays flat [1].',
];

test('empty', async () => {
  const {page, panel} = await openBook({context: WINDOW});
  await panel.open();
  await panel.waitForText('You could ask');
  await take(page, 'empty');
});

test('generated answer', async () => {
  await setScript(findModel(), {pieces: ANSWER, quotes: false});
  const {page, panel} = await openBook({book: findWriting().book, context: WINDOW});
  await panel.open();
  await panel.ask(QUESTION);
  await take(page, 'generated-answer');
});

test.each([
  ['quoted-answer', QUESTION],
  ['code', 'How do I launch a ROS 2 node in Python?'],
  ['related-sections', 'Which colour is best for a robot?'],
  ['closest-passages', 'How do I become a robotics engineer?'],
])('%s', async (name, question) => {
  const {page, panel} = await openBook({context: WINDOW});
  await panel.open();
  await panel.ask(question);
  await take(page, name);
});

test('selection', async () => {
  const {page, panel} = await openBook({context: WINDOW});
  await drag(page, page.locator('article p', {hasText: 'Push a standing robot'}));
  await findControl(page).waitFor();
  await take(page, 'ask-about-this');
  await findControl(page).click();
  await panel.field.waitFor();
  await take(page, 'selection');
  await panel.ask('How much does a GPU for Isaac Sim cost?');
  await take(page, 'selection-refusal');
});

test('citation', async () => {
  await setScript(findModel(), {pieces: ANSWER, quotes: false});
  const book = findWriting().book;
  const {page, panel} = await openBook({book, path: 'docs/glossary', context: WINDOW});
  await panel.open();
  await panel.ask(QUESTION);
  await panel.citations.first().hover();
  await page.waitForTimeout(600);
  await take(page, 'citation-preview');
  await panel.citations.first().click();
  await waitForHighlight(page);
  await take(page, 'highlight');
});

test('search', async () => {
  const {page} = await openBook({path: 'docs/intro', context: WINDOW});
  const box = page.getByPlaceholder('Search').first();
  await box.click();
  await box.pressSequentially('capture point', {delay: 20});
  await page.locator('[class*="hitTitle"]').first().waitFor();
  await take(page, 'search');
});

test('service down', async () => {
  const {context, page, panel} = await openBook({context: WINDOW, expected: [/./]});
  await panel.open();
  await context.route('**/v1/answers', (route) => route.abort());
  await panel.ask(QUESTION);
  await take(page, 'service-down');
});

test('too many questions', {timeout: 120_000}, async () => {
  const service = await startService(inject('indexDir'), {SERVE_CLIENT_RATE: '1/minute'});
  try {
    const {page, panel} = await openBook({book: service.book, context: WINDOW, expected: [/./]});
    await panel.open();
    await panel.ask(QUESTION);
    await panel.ask('What is the capture point?');
    await take(page, 'too-many-questions');
  } finally {
    await service.stop();
  }
});

test('phone', async () => {
  const context = {viewport: {width: 360, height: 640}, isMobile: true, hasTouch: true};
  const {page, panel} = await openBook({context});
  await panel.open();
  await panel.ask(QUESTION);
  await take(page, 'phone');
});

test('dark', async () => {
  const {page, panel} = await openBook({context: {...WINDOW, colorScheme: 'dark'}});
  await panel.open();
  await panel.ask(QUESTION);
  await take(page, 'dark');
});

test('right to left', async () => {
  const {page, panel} = await openBook({context: WINDOW});
  await panel.open();
  await panel.ask(QUESTION);
  // The site writes its own direction until the page is complete.
  await page.evaluate(() => document.documentElement.setAttribute('dir', 'rtl'));
  await take(page, 'right-to-left');
});
