/** Starts what browser tests share: the index, services, scripted models and Chromium. */

import {existsSync} from 'node:fs';
import {delimiter, join} from 'node:path';
import {chromium} from 'playwright-core';
import type {TestProject} from 'vitest/node';

import {WORKERS} from '../../../vitest.config';
import {startModel} from './model';
import {makeIndex, type Service, startService} from './service';
import {checkBuild} from './site';

/** A running service without its functions, as another process can receive it. */
export type ServiceAddress = Omit<Service, 'stop'>;

/** A scripted model, and the service whose answers it writes. */
export interface Scripted {
  /** The address of the model. */
  model: string;
  service: ServiceAddress;
}

declare module 'vitest' {
  /** The values that the global setup gives to the tests. */
  export interface ProvidedContext {
    /** The folder of the index. */
    indexDir: string;
    /** The service that quotes from the book, without a model. */
    quoting: ServiceAddress;
    /** The scripted models, one for each worker. */
    scripted: Scripted[];
    /** The address of Chromium. */
    browser: string;
  }
}

const PROGRAMS = ['chromium', 'chromium-browser', 'google-chrome'];

/** Returns the program of Chromium: that of `CHROMIUM`, or one on the `PATH`. */
function findChromium(): string {
  const folders = (process.env.PATH ?? '').split(delimiter);
  const usual = PROGRAMS.flatMap((name) => folders.map((folder) => join(folder, name)));
  const found = [process.env.CHROMIUM ?? '', ...usual].find((path) => path && existsSync(path));
  if (!found) {
    throw new Error('Chromium is not installed. Install it, or set CHROMIUM to its program.');
  }
  return found;
}

/** Starts everything and returns a function that ends it. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  checkBuild();
  const ends: (() => Promise<void> | void)[] = [];
  const tearDown = async (): Promise<void> => {
    for (const end of ends.reverse()) {
      await end();
    }
  };
  try {
    const browser = await chromium.launchServer({
      executablePath: findChromium(),
      args: ['--no-sandbox'],
    });
    ends.push(() => browser.close());
    const index = await makeIndex();
    ends.push(index.remove);
    const startScripted = async (): Promise<Scripted> => {
      const model = await startModel();
      ends.push(model.stop);
      const settings = {OPENAI_BASE_URL: `${model.url}/v1`, ANSWER_MODEL: 'scripted'};
      const service = await startService(index.dir, settings).then(keep(ends));
      return {model: model.url, service};
    };
    const [quoting, scripted] = await Promise.all([
      startService(index.dir).then(keep(ends)),
      Promise.all(Array.from({length: WORKERS}, startScripted)),
    ]);
    project.provide('indexDir', index.dir);
    project.provide('quoting', quoting);
    project.provide('scripted', scripted);
    project.provide('browser', browser.wsEndpoint());
  } catch (error) {
    await tearDown();
    throw error;
  }
  return tearDown;
}

function keep(ends: (() => Promise<void> | void)[]): (service: Service) => ServiceAddress {
  return ({stop, ...address}) => {
    ends.push(() => stop());
    return address;
  };
}
