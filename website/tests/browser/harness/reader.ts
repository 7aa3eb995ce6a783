/** A reader: a browser context of its own with one page, and what went wrong in it. */

import {mkdirSync} from 'node:fs';
import {join} from 'node:path';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core';
import {expect, inject, onTestFinished} from 'vitest';

import {Panel} from './panel';
import {WEBSITE} from './site';

const PICTURES = join(WEBSITE, '.cache/browser-tests');

/** How a reader opens the book. */
export interface ReaderOptions {
  /** The address of the book; ends with a slash. Default: the service that quotes. */
  book?: string;
  /** The page below the book's address, such as `docs/glossary`. Default: an ordinary page. */
  path?: string;
  /**
   * Options of the browser context, such as its viewport or color scheme. With options, even empty
   * ones, the test has a context of its own; the others share one, whose cache saves time.
   */
  context?: BrowserContextOptions;
  /** Runs in each page before its own scripts. */
  before?: () => void;
  /** An element that a page has when the panel can be used. Default: that of a page of Docusaurus. */
  ready?: string;
  /** Messages of the console that the test expects, besides the ones that it causes itself. */
  expected?: RegExp[];
}

/** An open page of the book with its panel. */
export interface Reader {
  context: BrowserContext;
  page: Page;
  panel: Panel;
  /** The address of the book; ends with a slash. */
  book: string;
  /** The bodies of the questions that were sent so far. */
  sent: Record<string, unknown>[];
  /** Expects messages of the console from now on, such as those of a service that is down. */
  expect: (message: RegExp) => void;
}

/** An ordinary page of the book: prose, formulas, code and a table. */
export const PAGE = 'docs/module-4/4.2-locomotion-manipulation/balance-zmp-and-capture-point';

let connection: Promise<Browser> | undefined;
let shared: Promise<BrowserContext> | undefined;

/**
 * Opens the book for the current test.
 *
 * The test fails at its end if the page logged an error that nobody expected. A picture of the page
 * is kept if the test fails.
 */
export async function openBook(options: ReaderOptions = {}): Promise<Reader> {
  const isOwn = Boolean(options.context ?? options.before);
  const context = await (isOwn ? openContext(options) : (shared ??= openContext({})));
  const expected = [...(options.expected ?? [])];
  const errors: string[] = [];
  const sent: Record<string, unknown>[] = [];
  const watchPage = (page: Page): void => watch(page, errors, sent);
  context.on('page', watchPage);
  const page = await context.newPage();
  onTestFinished(async ({task}) => {
    // Here and not when the test failed, because the page is closed by then.
    if (task.result?.state === 'fail') {
      mkdirSync(PICTURES, {recursive: true});
      const name = task.name.replace(/\W+/g, '-');
      await page.screenshot({path: join(PICTURES, `${name}.png`)}).catch(() => undefined);
    }
    context.off('page', watchPage);
    await (isOwn ? context.close() : clear(context));
    const surprises = errors.filter((error) => !expected.some((known) => known.test(error)));
    expect(surprises, 'errors in the console of the browser').toEqual([]);
  });
  const book = options.book ?? inject('quoting').book;
  await page.goto(book + (options.path ?? PAGE));
  // Before that, the page hears no key, and its text may be replaced while it is selected.
  const ready = options.ready ?? 'html[data-has-hydrated="true"]';
  await page.locator(ready).waitFor({state: 'attached'});
  const panel = new Panel(page);
  return {context, page, panel, book, sent, expect: (message) => void expected.push(message)};
}

async function openContext({context: given, before}: ReaderOptions): Promise<BrowserContext> {
  connection ??= chromium.connect(inject('browser'));
  const context = await (await connection).newContext({
    viewport: {width: 1280, height: 800},
    // Animations would make tests wait for them; a test of motion asks for it.
    reducedMotion: 'reduce',
    ...given,
  });
  context.setDefaultTimeout(45_000);
  if (before) {
    await context.addInitScript(before);
  }
  return context;
}

/** Closes all pages of a context that other tests use, too, and forgets what they stored. */
async function clear(context: BrowserContext): Promise<void> {
  const pages = context.pages();
  await pages[0]?.evaluate(() => localStorage.clear()).catch(() => undefined);
  await Promise.all(pages.map((page) => page.close()));
}

function watch(page: Page, errors: string[], sent: Record<string, unknown>[]): void {
  page.on('console', (message) => {
    if (message.type() === 'error') {
      errors.push(`${message.text()} (${message.location().url})`);
    }
  });
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('request', (request) => {
    if (request.method() === 'POST' && request.url().endsWith('/v1/answers')) {
      sent.push(request.postDataJSON() as Record<string, unknown>);
    }
  });
}
