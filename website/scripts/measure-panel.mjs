// Measures what a reader waits for, and how many answers fit on one screen.
//
//     node scripts/measure-panel.mjs ADDRESS [--every 4] [--runs 9] [--questions FILE]
//
// `ADDRESS` is a running service with the book (`make serve`), such as http://127.0.0.1:8000/book/.
// Prints medians in milliseconds, and for two windows the share of answers whose text, places and
// buttons are in view without scrolling. Asks every fourth question of the golden set. Needs Chromium.

import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {parseArgs} from 'node:util';
import {chromium} from 'playwright-core';

const PAGE = 'docs/module-4/4.2-locomotion-manipulation/balance-zmp-and-capture-point';
const GOLDEN = fileURLToPath(
  new URL('../../rag_pipeline/evaluation/golden/questions.json', import.meta.url),
);
const WINDOWS = {
  desktop: {viewport: {width: 1440, height: 900}},
  phone: {viewport: {width: 390, height: 844}, isMobile: true, hasTouch: true},
};

const {positionals, values: options} = parseArgs({
  allowPositionals: true,
  options: {
    every: {type: 'string', default: '4'},
    runs: {type: 'string', default: '9'},
    questions: {type: 'string', default: GOLDEN},
  },
});
const [address] = positionals;
if (!address) {
  throw new Error('Name the address of the book, such as http://127.0.0.1:8000/book/.');
}
const questions = JSON.parse(readFileSync(options.questions, 'utf8'))
  .queries.filter(({expected}) => expected.length > 0)
  .map(({question}) => question)
  .filter((_, at) => at % Number(options.every) === 0);

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox'],
});
try {
  await measureTimes();
  for (const [name, context] of Object.entries(WINDOWS)) {
    await measureHeights(name, context);
  }
} finally {
  await browser.close();
}

/** Opens the book in a new context, as a reader who comes for the first time. */
async function open(context) {
  const page = await (await browser.newContext({reducedMotion: 'reduce', ...context})).newPage();
  await page.goto(new URL(PAGE, address).href, {waitUntil: 'networkidle'});
  await page.locator('html[data-has-hydrated="true"]').waitFor({state: 'attached'});
  return page;
}

/** Prints the time from a click to a field that takes text, and from a question to its first words. */
async function measureTimes() {
  const times = {'click to usable panel': [], 'question to first text': []};
  for (let number = 0; number < Number(options.runs); number += 1) {
    const page = await open(WINDOWS.desktop);
    await page.getByRole('button', {name: 'Ask RoboTutor', exact: true}).hover();
    // In the page, because the driver of the browser takes some time, too.
    const measured = await page.evaluate(async (question) => {
      const find = (selector) => document.querySelector(`[data-robotutor="panel"] ${selector}`);
      const until = async (isReached) => {
        const last = performance.now() + 30_000;
        while (!isReached()) {
          if (performance.now() > last) throw new Error('The panel does not answer.');
          await new Promise((resolve) => requestAnimationFrame(resolve));
        }
        return performance.now();
      };
      const launcher = document.querySelector('[data-robotutor="launcher"]');
      const clicked = performance.now();
      (launcher.matches('button') ? launcher : launcher.querySelector('button')).click();
      const usable = await until(() => find('textarea') === document.activeElement);
      await new Promise((resolve) => setTimeout(resolve, 1500)); // nobody types faster
      const field = find('textarea');
      Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value').set.call(field, question);
      field.dispatchEvent(new Event('input', {bubbles: true}));
      await new Promise((resolve) => setTimeout(resolve, 100));
      const asked = performance.now();
      field.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true, cancelable: true}));
      const text = await until(() => find('blockquote p, :is([data-status="done"], [data-status="refused"]) p')?.textContent);
      return [usable - clicked, text - asked];
    }, questions[number % questions.length]);
    Object.values(times).forEach((found, at) => found.push(measured[at]));
    await page.context().close();
  }
  for (const [name, found] of Object.entries(times)) {
    found.sort((one, other) => one - other);
    const middle = found[Math.floor(found.length / 2)];
    console.log(`${name}: ${Math.round(middle)} ms (best ${Math.round(found[0])})`);
  }
}

/** Prints the share of answers that fit, and the height of the others as a share of the screen. */
async function measureHeights(name, context) {
  const page = await open(context);
  const panel = page.locator('[data-robotutor="panel"]');
  const turn = panel.locator('article[data-robotutor="turn"]').last();
  const field = panel.locator('textarea').last();
  await page.getByRole('button', {name: 'Ask RoboTutor', exact: true}).click();
  const shares = [];
  for (const question of questions) {
    await field.fill(question);
    await field.press('Enter');
    await turn.locator('xpath=self::*[@data-status="done" or @data-status="refused"]').waitFor();
    await page.waitForTimeout(350); // formulas and code are drawn in later frames
    shares.push(
      await turn.evaluate((article) => {
        const list = article.closest('[role="region"]');
        const more = article.querySelector('[data-robotutor="follow-ups"]');
        const last = more ? more.previousElementSibling : article.lastElementChild;
        const height = last.getBoundingClientRect().bottom - article.getBoundingClientRect().top;
        return height / list.clientHeight;
      }),
    );
    await panel.getByRole('button', {name: 'New conversation'}).click();
  }
  const fitting = shares.filter((share) => share <= 1).length;
  const long = questions.filter((_, at) => shares[at] > 1);
  console.log(
    `${name}: ${fitting} of ${shares.length} answers fit on one screen ` +
      `(${Math.round((100 * fitting) / shares.length)} %)`,
  );
  long.forEach((question) => {
    const share = shares[questions.indexOf(question)];
    console.log(`  ${share.toFixed(2)} screens: ${question}`);
  });
  await page.context().close();
}
