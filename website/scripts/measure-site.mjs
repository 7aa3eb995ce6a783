// Measures the costs of RoboTutor: for a reader who never opens it, for opening it, and for an answer.
//
//     node scripts/measure-site.mjs [--before FOLDER] [--after FOLDER] [--runs 5] [--slowdown 4]
//
// Compares the built site in `build` with a build without the panel, which is made in `.cache` if no
// folder is given. Prints sizes as gzip sends them and load times as medians. Needs Chromium.

import {spawnSync} from 'node:child_process';
import {existsSync, readFileSync} from 'node:fs';
import {createServer} from 'node:http';
import {basename, dirname, extname, join, relative} from 'node:path';
import {fileURLToPath} from 'node:url';
import {parseArgs} from 'node:util';
import {gzipSync} from 'node:zlib';
import {chromium} from 'playwright-core';

const WEBSITE = join(dirname(fileURLToPath(import.meta.url)), '..');
const PAGE = 'docs/module-4/4.2-locomotion-manipulation/balance-zmp-and-capture-point';
// An answer that the service gave.
const ANSWER = join(WEBSITE, 'packages/docusaurus-theme-robotutor/tests/service/recordings/quoted.sse');
const TYPES = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
  '.woff2': 'font/woff2',
};

/** The compressed content of files by their paths. */
const compressed = new Map();

const {values: options} = parseArgs({
  options: {
    before: {type: 'string'},
    after: {type: 'string', default: join(WEBSITE, 'build')},
    runs: {type: 'string', default: '5'},
    slowdown: {type: 'string', default: '4'},
  },
});

const folders = {before: options.before ?? buildWithoutPanel(), after: options.after};
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox'],
});
const sites = {before: await serve(folders.before), after: await serve(folders.after)};
try {
  printStartSizes();
  await printPanelSizes();
  await printLoadTimes();
} finally {
  await browser.close();
  Object.values(sites).forEach((site) => site.server.close());
}

/** Builds the site without the panel and returns its folder. */
function buildWithoutPanel() {
  const folder = join(WEBSITE, '.cache/without-robotutor');
  const {status} = spawnSync('npx', ['docusaurus', 'build', '--out-dir', folder], {
    cwd: WEBSITE,
    env: {...process.env, ROBOTUTOR: 'off'},
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (status !== 0) {
    throw new Error('The site without the panel cannot be built.');
  }
  return folder;
}

/** Serves a built site at the path that its pages expect. */
async function serve(folder) {
  const html = readFileSync(join(folder, 'index.html'), 'utf8');
  const base = /src="?([^" >]*?)assets\/js\//.exec(html)[1];
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url, 'http://site').pathname).slice(base.length);
    const names = [path, `${path}.html`, join(path, 'index.html')].map((name) => join(folder, name));
    const file = names.find((name) => extname(name) && existsSync(name));
    if (!file) {
      response.writeHead(404).end();
      return;
    }
    const headers = {'content-type': TYPES[extname(file)] ?? 'application/octet-stream'};
    response.writeHead(200, {...headers, 'content-encoding': 'gzip'});
    response.end(gzip(file));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {server, folder, base, url: `http://127.0.0.1:${server.address().port}${base}`};
}

/** Returns the compressed content of a file. */
function gzip(file) {
  if (!compressed.has(file)) {
    compressed.set(file, gzipSync(readFileSync(file), {level: 9}));
  }
  return compressed.get(file);
}

/** Prints the sizes of the scripts that every page loads. */
function printStartSizes() {
  console.log('Scripts and styles of the first page (gzip, bytes)');
  const totals = {};
  for (const [name, {folder, base}] of Object.entries(sites)) {
    const html = readFileSync(join(folder, 'index.html'), 'utf8');
    const files = [...html.matchAll(/(?:src|href)="?([^" >]+\.(?:js|css))/g)]
      .map(([, path]) => join(folder, path.slice(base.length)))
      .filter(existsSync);
    totals[name] = {};
    for (const file of new Set(files)) {
      const kind = relative(folder, file).replace(/\.[0-9a-f]{6,}\./, '.');
      totals[name][kind] = gzip(file).length;
    }
  }
  for (const kind of new Set([...Object.keys(totals.before), ...Object.keys(totals.after)])) {
    const [before, after] = [totals.before[kind] ?? 0, totals.after[kind] ?? 0];
    const change = after - before;
    console.log(`  ${kind}: ${before} -> ${after} (${change >= 0 ? '+' : ''}${change})`);
  }
}

/** Prints the sizes of the files that opening the panel and its first answer load. */
async function printPanelSizes() {
  const page = await browser.newPage();
  await page.route('**/v1/contents**', (route) => route.fulfill({json: {pages: []}}));
  await page.route('**/v1/answers', (route) =>
    route.fulfill({contentType: 'text/event-stream', body: readFileSync(ANSWER)}),
  );
  await page.goto(sites.after.url + PAGE, {waitUntil: 'networkidle'});
  const loaded = new Set();
  page.on('request', (request) => loaded.add(request.url()));
  await page.getByRole('button', {name: 'Ask RoboTutor', exact: true}).click();
  const field = page.getByRole('textbox', {name: 'Ask about this book'});
  await field.waitFor();
  await page.waitForLoadState('networkidle');
  const opened = printSizes('Loaded by opening the panel (gzip, bytes)', loaded);
  loaded.clear();
  await field.fill('What is the zero moment point?');
  await field.press('Enter');
  await page.locator('[data-robotutor="turn"][data-status="done"] blockquote p').first().waitFor();
  await page.waitForLoadState('networkidle');
  const answered = printSizes('Loaded by the first answer (gzip, bytes)', loaded);
  await page.close();
  console.log(`The panel with an answer, without KaTeX: ${opened + answered}`);
}

/** Prints the sizes of scripts and style sheets, and returns their sum without KaTeX. */
function printSizes(title, urls) {
  console.log(title);
  let total = 0;
  for (const url of urls) {
    const {folder, base} = sites.after;
    const file = join(folder, new URL(url).pathname.slice(base.length));
    // Docusaurus loads the pages behind visible links in advance. Their names are 8 digits.
    const isPage = /^[0-9a-f]{8}\./.test(basename(file));
    if (['.js', '.css'].includes(extname(file)) && !isPage && existsSync(file)) {
      const isKatex = /katex-mathml|ParseError:KaTeX/.test(readFileSync(file, 'utf8'));
      total += isKatex ? 0 : gzip(file).length;
      console.log(`  ${relative(folder, file)}: ${gzip(file).length}${isKatex ? ' (KaTeX)' : ''}`);
    }
  }
  console.log(`  all without KaTeX: ${total}`);
  return total;
}

/** Prints the medians of load times, measured in turns so that both sites meet the same load. */
async function printLoadTimes() {
  const times = {before: [], after: []};
  await measureLoad(sites.after.url + PAGE); // the first page of a browser is slower
  for (let number = 0; number < Number(options.runs); number += 1) {
    for (const name of ['before', 'after']) {
      times[name].push(await measureLoad(sites[name].url + PAGE));
    }
  }
  console.log(
    `A page without a cache, processor slowed down ${options.slowdown} times, ` +
      `medians of ${options.runs} (ms)`,
  );
  for (const measure of Object.keys(times.before[0])) {
    const [before, after] = ['before', 'after'].map((name) =>
      median(times[name].map((run) => run[measure])),
    );
    console.log(`  ${measure}: ${before} -> ${after}`);
  }
}

async function measureLoad(url) {
  const context = await browser.newContext();
  const page = await context.newPage();
  const client = await context.newCDPSession(page);
  await client.send('Emulation.setCPUThrottlingRate', {rate: Number(options.slowdown)});
  await page.addInitScript(() => {
    window.longTasks = [];
    const note = (list) => window.longTasks.push(...list.getEntries());
    new PerformanceObserver(note).observe({type: 'longtask', buffered: true});
    const noteHydration = () => {
      if (document.documentElement?.dataset.hasHydrated === 'true') {
        window.hydratedAt ??= performance.now();
      }
    };
    new MutationObserver(noteHydration).observe(document, {attributes: true, subtree: true});
  });
  await page.goto(url, {waitUntil: 'networkidle'});
  await page.waitForFunction(() => window.hydratedAt);
  await page.waitForTimeout(500);
  const measured = await page.evaluate(() => {
    const [navigation] = performance.getEntriesByType('navigation');
    const paint = performance.getEntriesByName('first-contentful-paint')[0];
    const ends = window.longTasks.map((task) => task.startTime + task.duration);
    const blocked = window.longTasks.map((task) => Math.max(0, task.duration - 50));
    return {
      'first contentful paint': paint?.startTime ?? 0,
      'load event': navigation.loadEventEnd,
      'interactive (hydrated, and no long task after it)': Math.max(window.hydratedAt, ...ends),
      'total blocking time': blocked.reduce((sum, part) => sum + part, 0),
    };
  });
  await context.close();
  return measured;
}

function median(values) {
  return Math.round(values.sort((one, other) => one - other)[Math.floor(values.length / 2)]);
}
