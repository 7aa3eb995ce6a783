import {execFile, spawn} from 'node:child_process';
import {createHash} from 'node:crypto';
import {once} from 'node:events';
import {readdir, readFile} from 'node:fs/promises';
import {join} from 'node:path';
import {promisify} from 'node:util';
import {type Browser, chromium, type Page} from 'playwright-core';
import {afterAll, beforeAll, expect, test} from 'vitest';

import type {Manifest} from '../../packages/docusaurus-theme-robotutor/src/manifest/writeManifest';
import {waitUntilReady} from '../browser/harness/service';
import {REPOSITORY} from '../browser/harness/site';
import {makeOtherSite, type OtherSite} from './site';

const PROGRAM = join(REPOSITORY, '.venv/bin/rag-pipeline');

let site: OtherSite;
let browser: Browser;
let origin: string;
const ends: (() => Promise<unknown> | void)[] = [];

beforeAll(async () => {
  site = await makeOtherSite();
  ends.push(site.remove);
  await site.docusaurus('build');
  origin = await serve(site.dir);
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox'],
  });
  ends.push(() => browser.close());
});

afterAll(async () => {
  for (const end of ends.reverse()) {
    await end();
  }
});

/** Indexes the pages of the site and serves it together with the answers. */
async function serve(dir: string): Promise<string> {
  const env = {
    ...process.env,
    DATA_DIR: join(dir, 'data'),
    DOCS_DIR: join(dir, 'docs'),
    EMBEDDING_PROVIDER: 'local',
    QDRANT_URL: '',
    SITE_BASE_URL: '/x/',
    SITE_ROUTE_BASE_PATH: '',
    SITE_TRAILING_SLASH: 'true',
  };
  await promisify(execFile)(PROGRAM, ['ingest'], {cwd: REPOSITORY, env});
  const args = ['serve', '--port', '0', '--site', join(dir, 'build')];
  const child = spawn(PROGRAM, args, {cwd: REPOSITORY, env, stdio: ['ignore', 'pipe', 'pipe']});
  ends.push(async () => {
    const ended = once(child, 'exit');
    child.kill();
    await ended;
  });
  const output = await waitUntilReady(child);
  return new URL(/Book:\s+(http\S+)/.exec(output)?.[1] ?? '').origin;
}

/** Opens a page and its panel. The test fails if the page throws an error. */
async function open(path: string): Promise<Page> {
  const context = await browser.newContext({viewport: {width: 1280, height: 800}});
  context.setDefaultTimeout(45_000);
  const page = await context.newPage();
  page.on('pageerror', (error) => {
    throw error;
  });
  await page.goto(origin + path);
  await page.getByRole('button', {name: 'Ask Gardener'}).click();
  await page.getByRole('complementary', {name: 'Gardener'}).waitFor();
  return page;
}

const isHighlighted = (): boolean => (CSS.highlights.get('robotutor')?.size ?? 0) > 0;

test('the options of the site are used', async () => {
  const page = await open('/x/');
  await page.getByText('Ask me about robots in gardens.').waitFor();
  await page.keyboard.press('Control+Shift+K');
  await page.getByRole('complementary', {name: 'Gardener'}).waitFor({state: 'hidden'});
  expect(await page.getByRole('button', {name: 'Copy page as Markdown'}).count()).toBe(0);
  expect(await page.locator('link[type="text/markdown"]').count()).toBe(0);
});

test('the site keeps its own Root', async () => {
  const page = await open('/x/');
  expect(await page.locator('[data-site="root"]').innerText()).toBe('Opens in spring.');
});

test('a suggested question is answered, and its citation leads to the passage', async () => {
  const page = await open('/x/');
  await page.getByRole('button', {name: 'How does a gripper hold a tomato?'}).click();
  const turn = page.locator('article[data-robotutor="turn"]');
  await turn.getByText('three silicone fingers').first().waitFor();
  await turn.locator('a[data-robotutor="citation"]').first().click();
  await page.waitForURL(`${origin}/x/arms/grippers/#holding-a-tomato`);
  await page.waitForFunction(isHighlighted);
});

test('a question about a selection is answered from it', async () => {
  const page = await open('/x/arms/grippers/');
  const passage = page.locator('main article p', {hasText: 'The gripper turns'});
  await passage.click({clickCount: 3});
  await page.getByRole('button', {name: 'Ask about this', exact: true}).click();
  const field = page.getByRole('textbox', {name: 'Ask about this book'});
  await field.fill('How long do the blades need to close?');
  await field.press('Enter');
  await page.locator('article[data-status="done"]').getByText('half a second').first().waitFor();
});

test('a right-to-left page makes room on the side of the panel only', async () => {
  const page = await open('/x/ar/arms/grippers/');
  const panel = await page.locator('[data-robotutor="panel"]').boundingBox();
  const navbar = await page.locator('.navbar').boundingBox();
  expect(panel?.x).toBe(0);
  expect(navbar?.x).toBe(panel?.width);
  expect((navbar?.x ?? 0) + (navbar?.width ?? 0)).toBe(1280);
});

test('a citation on a page in another language leads to the page of the book', async () => {
  const page = await open('/x/ar/');
  await page.getByRole('button', {name: 'How does a gripper hold a tomato?'}).click();
  await page.locator('article[data-status="done"] a[data-robotutor="citation"]').first().click();
  await page.waitForURL(`${origin}/x/arms/grippers/#holding-a-tomato`);
  await page.waitForFunction(isHighlighted);
});

test('each language has a manifest with the addresses and headings of its pages', async () => {
  for (const [folder, locale, base] of [['', 'en', '/x/'], ['ar/', 'ar', '/x/ar/']] as const) {
    const file = join(site.dir, `build/${folder}rag-manifest.json`);
    const manifest = JSON.parse(await readFile(file, 'utf8')) as Manifest;
    expect(manifest.site).toMatchObject({locale, baseUrl: base, trailingSlash: true});
    const page = manifest.pages.find(({source}) => source === 'docs/arms/grippers.md');
    const text = await readFile(join(site.dir, 'docs/arms/grippers.md'));
    expect(page).toMatchObject({
      kind: 'docs',
      permalink: `${base}arms/grippers/`,
      isLatestVersion: true,
      sourceHash: createHash('sha256').update(text).digest('hex'),
    });
    expect(page?.headings.map(({id}) => id)).toContain('holding-a-tomato');
    expect(manifest.pages).toHaveLength(3);
  }
});

test('all words can be translated', async () => {
  await site.docusaurus('write-translations', '--locale', 'ar');
  const words = JSON.parse(await readFile(join(site.dir, 'i18n/ar/code.json'), 'utf8')) as object;
  const ids = Object.keys(words).filter((id) => id.startsWith('theme.robotutor.'));
  const used = await findIds(join(site.dir, 'node_modules/docusaurus-theme-robotutor/src'));
  expect(ids.sort()).toEqual(used);
});

/** Returns the ids of words in source files, sorted. */
async function findIds(folder: string): Promise<string[]> {
  const {stdout} = await promisify(execFile)('grep', [
    '-rhoE', "id: '(theme\\.robotutor\\.[A-Za-z.]+)'", folder,
  ]);
  return [...new Set(stdout.match(/theme\.robotutor\.[A-Za-z.]+/g))].sort();
}

test('a site that switches the panel off has none of it', async () => {
  await site.edit('docusaurus.config.ts', "name: 'Gardener',", "name: 'Gardener', enabled: false,");
  await site.docusaurus('build', '--locale', 'en', '--out-dir', 'without');
  const page = await readFile(join(site.dir, 'without/index.html'), 'utf8');
  expect(page).toContain('Opens in spring.');
  expect(page).not.toMatch(/robotutor|gardener/i);
  const scripts = await readdir(join(site.dir, 'without/assets/js'));
  expect(scripts.filter((name) => name.includes('robotutor'))).toEqual([]);
});

test('a wrong option stops the build with an explanation', async () => {
  await site.edit('docusaurus.config.ts', "shortcut: 'mod+shift+k'", "shortcut: 'mod+k'");
  await expect(site.docusaurus('build')).rejects.toThrow(/"mod\+k" is used by browsers/);
});
