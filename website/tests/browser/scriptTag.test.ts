/** The script tag on pages that Docusaurus did not build. */

import {readFileSync} from 'node:fs';
import {createServer, type Server} from 'node:http';
import type {AddressInfo} from 'node:net';
import {join} from 'node:path';
import {AxeBuilder} from '@axe-core/playwright';
import {afterAll, beforeAll, expect, inject, test} from 'vitest';

import {openBook} from './harness/reader';
import {type Service, startService} from './harness/service';
import {WEBSITE} from './harness/site';

const DIST = join(WEBSITE, 'packages/docusaurus-theme-robotutor/dist');
const QUESTION = 'What is the zero moment point?';

// A style sheet that reaches every element, as those of some sites do.
const STYLES =
  ':root {color-scheme: light dark} ' +
  'button, a, p, h2, figure, details {color: red; background: lime; border: 4px dashed; font: 40px serif}';

let host: Server;
let notes: string;
let service: Service;
/** The data attributes of the script tag. */
let attributes = '';
beforeAll(async () => {
  host = createServer(({url = ''}, response) => {
    if (url.endsWith('.js')) {
      response.writeHead(200, {'content-type': 'text/javascript'});
      response.end(readFileSync(join(DIST, url)));
    } else {
      const script = `<script src="/robotutor.js" ${attributes}></script>`;
      response.writeHead(200, {'content-type': 'text/html'});
      response.end(
        `<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>Notes</title>` +
          `<style>${STYLES}</style>${script}<main><h1>Notes on robots</h1></main></html>`,
      );
    }
  });
  await new Promise<void>((resolve) => host.listen(0, '127.0.0.1', resolve));
  notes = `http://127.0.0.1:${(host.address() as AddressInfo).port}/`;
  service = await startService(inject('indexDir'), {SERVE_ORIGINS: new URL(notes).origin});
});
afterAll(async () => {
  host.close();
  host.closeAllConnections();
  await service.stop();
});

/** Opens the page with the script tag. */
const openNotes = (context = {}, ready = 'robo-tutor button') =>
  openBook({book: notes, path: 'robots.html', context, ready, expected: [/RoboTutor: /]});

test('a plain page gets an answer, and a citation opens the section of the book', async () => {
  attributes = `data-service="${service.origin}/"`;
  const {context, page, panel, sent} = await openNotes();
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  await panel.open();
  expect(asked.filter((url) => url.includes('katex'))).toEqual([]);
  expect(await panel.ask(QUESTION)).toBe('done');
  await panel.waitForText('no horizontal component');
  expect(sent).toEqual([expect.not.objectContaining({source_url: expect.anything()})]);
  const [book] = await Promise.all([context.waitForEvent('page'), panel.citations.first().click()]);
  await book.waitForURL(/#/);
  expect(book.url().startsWith(service.book)).toBe(true);
  await book.locator(`[id="${new URL(book.url()).hash.slice(1)}"]`).waitFor();
  expect(page.url()).toBe(`${notes}robots.html`);
});

test('the panel keeps its own look, and is dark on a dark page', async () => {
  attributes = `data-service="${service.origin}" data-language="de"`;
  const {page, panel} = await openNotes({colorScheme: 'dark'}, 'robo-tutor button');
  await page.locator('robo-tutor button').click();
  const ask = panel.root.getByRole('button', {name: 'Fragen', exact: true});
  await ask.waitFor();
  const read = (name: 'backgroundColor' | 'borderTopStyle' | 'fontSize', at = ask) =>
    at.evaluate((element, property) => getComputedStyle(element)[property], name);
  expect(await read('borderTopStyle')).toBe('solid');
  expect(await read('fontSize')).not.toBe('40px');
  expect(await read('backgroundColor', panel.root)).toBe('rgb(36, 37, 38)');
  await page.evaluate(() => void (document.documentElement.style.colorScheme = 'light'));
  await expect.poll(() => read('backgroundColor', panel.root)).toBe('rgb(255, 255, 255)');
  // A page without a color scheme is as dark as its background, whatever the system prefers.
  await page.evaluate(() => {
    document.documentElement.style.colorScheme = 'normal';
    document.body.style.background = '#111';
  });
  await expect.poll(() => read('backgroundColor', panel.root)).toBe('rgb(36, 37, 38)');
  await page.evaluate(() => void (document.body.style.background = ''));
  await expect.poll(() => read('backgroundColor', panel.root)).toBe('rgb(255, 255, 255)');
});

test('axe finds nothing in the panel on a plain page', async () => {
  attributes = `data-service="${service.origin}"`;
  for (const colorScheme of ['light', 'dark'] as const) {
    const {page, panel} = await openNotes({colorScheme});
    await panel.open();
    expect(await panel.ask(QUESTION)).toBe('done');
    await panel.waitForText('no horizontal component');
    const {violations} = await new AxeBuilder({page}).include('[data-robotutor]').analyze();
    expect(violations.map(({id, nodes}) => [id, nodes.map(({html}) => html)])).toEqual([]);
  }
});

test('citations open the book of data-base-url', async () => {
  attributes = `data-service="${service.origin}" data-base-url="https://book.example.org/en"`;
  const {panel} = await openNotes();
  await panel.open();
  await panel.ask(QUESTION);
  expect(await panel.citations.first().getAttribute('href')).toMatch(
    /^https:\/\/book\.example\.org\/en\/.+#/,
  );
});

test('a tag without a service is one message, and the page stays whole', async () => {
  attributes = '';
  const {page} = await openNotes({}, 'main');
  expect(await page.locator('robo-tutor').count()).toBe(0);
  expect(await page.getByRole('heading', {name: 'Notes on robots'}).isVisible()).toBe(true);
});
