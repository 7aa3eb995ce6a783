import {createHash} from 'node:crypto';

import {expect, inject, test} from 'vitest';

import {setScript} from './harness/model';
import {startProxy} from './harness/proxy';
import {openBook} from './harness/reader';
import {findModel, findWriting} from './harness/scripted';

const QUESTION = 'What is the zero moment point?';

const HOSTILE = [
  'An answer <script>window.harmed = 1</script> with markup [1].\n\n',
  '<img src="x" onerror="window.harmed = 2"> <svg onload="window.harmed = 3"></svg>\n\n',
  '[Press here](javascript:window.harmed=4) or [there](data:text/html,<script>1</script>) [1].\n\n',
  '![A picture](https://evil.example.com/pixel.png) [1]\n\n',
  '<iframe src="https://evil.example.com"></iframe> <a href="javascript:window.harmed=5">x</a>\n\n',
  '$\\href{javascript:window.harmed=6}{x}$ and $\\includegraphics{https://evil.example.com/a}$ [1].\n',
];

test('markup, scripts and pictures in an answer do nothing', async () => {
  await setScript(findModel(), {pieces: HOSTILE});
  const {page, panel, book} = await openBook({book: findWriting().book});
  const foreign: string[] = [];
  page.on('request', (request) => {
    if (!request.url().startsWith(new URL(book).origin)) {
      foreign.push(request.url());
    }
  });
  await panel.open();
  await panel.ask(QUESTION);
  await panel.waitForText('with markup');
  for (const link of await panel.turn.locator('a').all()) {
    expect((await link.getAttribute('href')) ?? '').not.toMatch(/^\s*(javascript|data|vbscript):/i);
  }
  const risky = 'script, iframe, object, embed, svg[onload], img[src^="http"], [onerror]';
  expect(await panel.turn.locator(risky).count()).toBe(0);
  expect(await page.evaluate(() => 'harmed' in window)).toBe(false);
  expect(foreign).toEqual([]);
});

test('a question with markup is shown as it was written', async () => {
  const {page, panel} = await openBook();
  await panel.open();
  await panel.ask('<img src=x onerror="window.harmed=1"> zero moment point?');
  await panel.waitForText('<img src=x onerror="window.harmed=1"> zero moment point?');
  expect(await page.evaluate(() => 'harmed' in window)).toBe(false);
});

test('RoboTutor works under a policy without unsafe inline scripts', async () => {
  const service = {...inject('quoting'), stop: async () => undefined};
  const book = await startProxy(service, {addToPage: allowOwnScripts});
  // Any violation of the policy is an error in the console, and fails the test.
  const {page, panel} = await openBook({book, path: 'docs/glossary'});
  await panel.open();
  expect(await panel.ask(QUESTION)).toBe('done');
  await panel.turn.locator('.katex').first().waitFor();
  await panel.citations.first().click();
  await page.waitForURL(/#the-zero-moment-point/);
});

test('blocked storage does not break the panel', async () => {
  const {panel} = await openBook({
    before: () => {
      const refuse = (): never => {
        throw new DOMException('The operation is insecure.', 'SecurityError');
      };
      Object.defineProperty(window, 'sessionStorage', {get: refuse});
      Object.defineProperty(window, 'localStorage', {get: refuse});
    },
  });
  await panel.open();
  expect(await panel.ask(QUESTION)).toBe('done');
  expect(await panel.ask('And why does it matter?')).toBe('done');
});

test('full storage does not break the panel', async () => {
  const {panel} = await openBook({
    before: () => {
      Storage.prototype.setItem = () => {
        throw new DOMException('The quota is exceeded.', 'QuotaExceededError');
      };
    },
  });
  await panel.open();
  expect(await panel.ask(QUESTION)).toBe('done');
});

test('a spoiled conversation in the storage is ignored', async () => {
  const {page, panel} = await openBook();
  await panel.open();
  await panel.ask(QUESTION);
  await page.evaluate(() => {
    for (const key of Object.keys(sessionStorage)) {
      sessionStorage.setItem(key, '{"turns": [{"status": 7}, null');
    }
  });
  await page.reload();
  await panel.reopen();
  expect(await panel.ask(QUESTION)).toBe('done');
});

/** Returns a policy that allows the scripts of a page by their hashes. */
function allowOwnScripts(html: string): Record<string, string> {
  const inline = [...html.matchAll(/<script(?![^>]*\bsrc=)[^>]*>([\s\S]*?)<\/script>/g)];
  const hashes = inline.map(([, code]) => {
    const hash = createHash('sha256').update(code as string).digest('base64');
    return `'sha256-${hash}'`;
  });
  const policy = [
    "default-src 'self'",
    `script-src 'self' ${hashes.join(' ')}`,
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    // The style sheet of the site contains the small fonts of its formulas.
    "font-src 'self' data:",
    "object-src 'none'",
    "base-uri 'self'",
  ];
  return {'content-security-policy': policy.join('; ')};
}
