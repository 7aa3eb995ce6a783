/**
 * Measures how many cited texts the built site highlights completely.
 *
 *   node scripts/measure-highlights.mjs --answers answers.jsonl [--split tune] [--no-scripts]
 *
 * `answers.jsonl` has one object per line: `{"id", "split", "answer"}`, where `answer` is the JSON
 * answer of `POST /v1/answers`. With `--service http://127.0.0.1:8000`, the answers are fetched for
 * the golden questions and written to that file first. The service must allow that many questions:
 * start it with `SERVE_CLIENT_RATE=1000/minute`. Build the site before (`npm run build`).
 */

import {createReadStream, existsSync, readFileSync, statSync, writeFileSync} from 'node:fs';
import {createServer} from 'node:http';
import {extname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {parseArgs} from 'node:util';
import {build} from 'esbuild';
import {chromium} from 'playwright-core';

const website = fileURLToPath(new URL('..', import.meta.url));
const {values: options} = parseArgs({
  options: {
    answers: {type: 'string', default: 'answers.jsonl'},
    service: {type: 'string'},
    split: {type: 'string'},
    site: {type: 'string', default: join(website, 'build')},
    'no-scripts': {type: 'boolean', default: false},
    misses: {type: 'string', default: '20'},
  },
});

const BASE = '/physical-ai-robotics-textbook';
const GOLDEN = join(website, '../rag_pipeline/evaluation/golden/questions.json');
const TYPES = {'.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml'};

/** Asks the service each golden question and writes the answers to the file. */
async function fetchAnswers() {
  const lines = [];
  for (const {id, split, question} of JSON.parse(readFileSync(GOLDEN, 'utf8')).queries) {
    const response = await fetch(`${options.service}/v1/answers`, {
      method: 'POST',
      headers: {'Content-Type': 'application/json', Accept: 'application/json'},
      body: JSON.stringify({question, mode: 'normal'}),
    });
    if (!response.ok) throw new Error(`${id}: ${response.status} ${await response.text()}`);
    lines.push(JSON.stringify({id, split, answer: await response.json()}));
  }
  writeFileSync(options.answers, `${lines.join('\n')}\n`);
}

/** Returns the texts that the answers cite, by the path of their page, each text once. */
function readTargets() {
  const pages = new Map();
  const add = (kind, text, url) => {
    if (!text.trim() || !url) return;
    const [path, anchor = ''] = url.split('#');
    if (!pages.has(path)) pages.set(path, new Map());
    pages.get(path).set(`${kind} ${anchor} ${text}`, {kind, text, anchor});
  };
  for (const line of readFileSync(options.answers, 'utf8').trim().split('\n')) {
    const {split, answer} = JSON.parse(line);
    if (options.split && options.split !== split) continue;
    for (const {text, highlights, citation} of answer.passages) {
      add('passage', text, citation.url);
      for (const [start, end] of highlights) {
        add('sentence', Array.from(text).slice(start, end).join(''), citation.url);
      }
    }
    for (const {text, url} of answer.sources) add('section', text, url);
  }
  return pages;
}

/** Serves the built site as a static host does. */
function serveSite() {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url.split(/[?#]/)[0]).replace(BASE, '');
    const file = [path, `${path}.html`, `${path}/index.html`]
      .map((name) => join(options.site, name))
      .find((name) => existsSync(name) && statSync(name).isFile());
    response.writeHead(file ? 200 : 404, {'Content-Type': TYPES[extname(file ?? '')] ?? 'application/octet-stream'});
    if (file) createReadStream(file).pipe(response);
    else response.end();
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(server));
  });
}

/** Runs in the browser: finds each text and says how much of it is found. */
function findAll(targets) {
  const {findArticle, findPassage, readMarkdown, readPage} = window.highlighting;
  const article = findArticle();
  return targets.map(({text, anchor}) => {
    const letters = readMarkdown(text).join('');
    const started = performance.now();
    const ranges = findPassage(article, text, anchor);
    const ms = performance.now() - started;
    if (!letters) return {result: 'nothing to find', ms};
    if (!ranges) return {result: 'not found', ms};
    const tabs = Array.from(article.querySelectorAll('[role="tab"]'));
    const names = tabs.map((tab) => readPage(tab).letters);
    const withNames = ranges.reduce((found, range) => {
      const box = document.createElement('div');
      box.append(range.cloneContents());
      box.querySelectorAll('[role="tabpanel"]').forEach((panel) => panel.removeAttribute('role'));
      return found + readPage(box).letters;
    }, '');
    // The names of tabs are shown above all tabs and are not highlighted.
    let rest = withNames;
    let at = 0;
    while (at < letters.length) {
      const name = names.find((tab) => letters.startsWith(tab, at) && !rest.startsWith(tab));
      if (!name && letters[at] !== rest[0]) break;
      at += name ? name.length : 1;
      rest = name ? rest : rest.slice(1);
    }
    const complete = at === letters.length && rest === '';
    const heading = anchor && document.getElementById(anchor);
    const above = !heading || heading.compareDocumentPosition(ranges[0].startContainer) & 20 ||
      heading.contains(ranges[0].startContainer);
    return {result: complete ? (above ? 'complete' : 'other section') : 'in part', ms, withNames, letters};
  });
}

/** Prints the counts of a kind of texts. */
function report(kind, results) {
  const counts = {};
  for (const {result} of results) counts[result] = (counts[result] ?? 0) + 1;
  const times = results.map(({ms}) => ms).sort((a, b) => a - b);
  const at = (share) => times[Math.floor(share * times.length)].toFixed(1);
  const wanted = results.length - (counts['nothing to find'] ?? 0);
  const share = ((100 * (counts.complete ?? 0)) / wanted).toFixed(1);
  const time = `${at(0.5)} ms median, ${at(0.95)} ms p95, ${times.at(-1).toFixed(1)} ms max`;
  console.log(`${kind}: ${counts.complete ?? 0} of ${wanted} complete (${share}%); ${time}`, counts);
}

if (options.service) await fetchAnswers();
const bundle = await build({
  stdin: {
    contents: `
      export {findArticle} from './article';
      export {findPassage} from './highlight/findPassage';
      export {readMarkdown} from './highlight/readMarkdown';
      export {readPage} from './highlight/readPage';`,
    resolveDir: join(website, 'packages/docusaurus-theme-robotutor/src'),
    loader: 'ts',
  },
  bundle: true,
  format: 'iife',
  globalName: 'highlighting',
  write: false,
});
const script = `${bundle.outputFiles[0].text};window.highlighting = highlighting;`;
const server = await serveSite();
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox'],
});
const context = await browser.newContext({javaScriptEnabled: !options['no-scripts']});
const page = await context.newPage();
const results = [];
for (const [path, found] of readTargets()) {
  const targets = [...found.values()];
  const waitUntil = options['no-scripts'] ? 'domcontentloaded' : 'load';
  await page.goto(`http://127.0.0.1:${server.address().port}${path}`, {waitUntil});
  await page.evaluate(script);
  const outcomes = await page.evaluate(findAll, targets);
  outcomes.forEach((outcome, at) => results.push({...targets[at], ...outcome, path}));
}
await browser.close();
server.close();
for (const kind of ['sentence', 'passage', 'section']) {
  report(kind, results.filter((result) => result.kind === kind));
}
const misses = results.filter(({result}) => !['complete', 'nothing to find'].includes(result));
for (const {kind, result, path, anchor, text, withNames, letters} of misses.slice(0, Number(options.misses))) {
  console.log(`\n[${kind}: ${result}] ${path}#${anchor}\n${text.slice(0, 300)}`);
  if (withNames !== undefined) {
    let at = 0;
    while (at < letters.length && letters[at] === withNames[at]) at += 1;
    console.log(`  differs at ${at}: wanted ${letters.slice(at, at + 60)}, found ${withNames.slice(at, at + 60)}`);
  }
}
