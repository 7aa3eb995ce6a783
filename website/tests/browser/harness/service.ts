/** The real service, as a process of its own with its own copy of the index. */

import {type ChildProcess, execFile, spawn} from 'node:child_process';
import {once} from 'node:events';
import {cp, mkdtemp, readFile, rm} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {promisify} from 'node:util';

import {BUILD, REPOSITORY} from './site';

const run = promisify(execFile);

const PROGRAM = join(REPOSITORY, '.venv/bin/rag-pipeline');
const PYTHON = join(REPOSITORY, '.venv/bin/python');

const START_MS = 240_000;
const STOP_MS = 30_000;

/** Settings of the service by their environment variables. */
export type Settings = Record<string, string>;

/** A running service. */
export interface Service {
  /** The address without a slash at the end, such as `http://127.0.0.1:40123`. */
  origin: string;
  /** The address of the book's first page; ends with a slash. */
  book: string;
  /** The folder of its index and its question log. */
  dataDir: string;
  /** Ends the process and deletes its folder. With `SIGKILL` it has no time to say goodbye. */
  stop: (signal?: NodeJS.Signals) => Promise<void>;
}

/** Makes an index of the book in a temporary folder, or takes the one that a variable names. */
export async function makeIndex(): Promise<{dir: string; remove: () => Promise<void>}> {
  const ready = process.env.ROBOTUTOR_DATA_DIR;
  if (ready) {
    return {dir: ready, remove: async () => undefined};
  }
  const dir = await mkdtemp(join(tmpdir(), 'robotutor-index-'));
  const env = await makeEnvironment({DATA_DIR: dir});
  try {
    await run(PROGRAM, ['ingest'], {cwd: REPOSITORY, env, maxBuffer: 50_000_000});
  } catch (error) {
    await rm(dir, {recursive: true, force: true});
    throw error;
  }
  return {dir, remove: () => rm(dir, {recursive: true, force: true})};
}

/**
 * Starts a service with the book on a free port and waits until it answers questions.
 *
 * The question log is on and keeps questions. There are no rate limits unless the settings name
 * some.
 *
 * @param indexDir The index, which is copied.
 * @param settings Settings that differ from the defaults.
 * @throws With the output of the service if it does not become ready.
 */
export async function startService(indexDir: string, settings: Settings = {}): Promise<Service> {
  const dataDir = await mkdtemp(join(tmpdir(), 'robotutor-service-'));
  await copyIndex(indexDir, dataDir);
  const env = await makeEnvironment({
    EMBEDDING_PROVIDER: 'local',
    SERVE_CLIENT_RATE: '',
    SERVE_TOTAL_RATE: '',
    LOG_QUESTIONS: 'true',
    // A scripted model may also write what is not in the book.
    ANSWER_UNGROUNDED: 'mark',
    ...settings,
    DATA_DIR: dataDir,
  });
  const child = spawn(PROGRAM, ['serve', '--port', '0', '--site', BUILD], {
    cwd: REPOSITORY,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const killWithParent = (): void => void child.kill('SIGKILL');
  process.once('exit', killWithParent);
  const stop = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<void> => {
    await end(child, signal);
    process.off('exit', killWithParent);
    await rm(dataDir, {recursive: true, force: true});
  };
  try {
    const output = await waitUntilReady(child);
    const book = /Book:\s+(http\S+)/.exec(output)?.[1];
    if (!book) {
      throw new Error(`The service does not serve the book:\n${output}`);
    }
    return {origin: new URL(book).origin, book, dataDir, stop};
  } catch (error) {
    await stop('SIGKILL');
    throw error;
  }
}

/** Returns the rows of a query on the question log of a service. */
export async function readLog(
  service: Pick<Service, 'dataDir'>,
  query: string,
): Promise<Record<string, unknown>[]> {
  const program = [
    'import json, pathlib, sqlite3, sys',
    'found = [p for p in pathlib.Path(sys.argv[1]).rglob("*") if p.is_file() and',
    '         p.name == "state.sqlite"]',
    'database = sqlite3.connect(f"file:{found[0]}?mode=ro", uri=True)',
    'database.row_factory = sqlite3.Row',
    'print(json.dumps([dict(row) for row in database.execute(sys.argv[2])]))',
  ].join('\n');
  const {stdout} = await run(PYTHON, ['-c', program, service.dataDir, query]);
  return JSON.parse(stdout) as Record<string, unknown>[];
}

/** Copies the index of the book from one `DATA_DIR` to another. */
async function copyIndex(from: string, to: string): Promise<void> {
  const [source, target] = await Promise.all([findStateDir(from), findStateDir(to)]);
  // The service needs neither the logs nor the runs of the ingestion, and starts a log of its own.
  const isNeeded = (path: string): boolean =>
    !/\/(logs|dagster|questions\.sqlite[^/]*)$/.test(path);
  await cp(source, target, {recursive: true, filter: isNeeded});
}

/** Returns the folder of the book's index. Its name depends on where `DATA_DIR` is. */
async function findStateDir(dataDir: string): Promise<string> {
  const program =
    'from rag_pipeline.core.settings import load_settings; print(load_settings().state_dir)';
  const env = await makeEnvironment({DATA_DIR: dataDir});
  const {stdout} = await run(PYTHON, ['-c', program], {cwd: REPOSITORY, env});
  return stdout.trim();
}

/** Returns the environment of a process that has exactly these settings, and else the defaults. */
async function makeEnvironment(settings: Settings): Promise<NodeJS.ProcessEnv> {
  const defaults = await readFile(join(REPOSITORY, '.env.example'), 'utf8');
  const environment: NodeJS.ProcessEnv = {...process.env, NO_COLOR: '1'};
  // Every setting is given, because a file `.env` in the repository would fill in the others.
  for (const [, name, value] of defaults.matchAll(/^([A-Z][A-Z0-9_]*)=(.*)$/gm)) {
    environment[name as string] = value;
  }
  return {...environment, ...settings};
}

/** Waits until a service answers questions, and returns what it has written so far. */
export async function waitUntilReady(child: ChildProcess): Promise<string> {
  let output = '';
  return new Promise((resolve, reject) => {
    const fail = (reason: string): void => reject(new Error(`${reason}:\n${output}`));
    const late = setTimeout(() => fail('The service did not become ready in time'), START_MS);
    const read = (piece: Buffer): void => {
      output += piece.toString();
      if (/^Ready for questions/m.test(output)) {
        clearTimeout(late);
        resolve(output);
      } else if (/^Not ready yet/m.test(output)) {
        clearTimeout(late);
        fail('The service has no usable index');
      }
    };
    child.stdout?.on('data', read);
    child.stderr?.on('data', read);
    child.once('error', (error) => fail(`The service cannot be started (${error.message})`));
    child.once('exit', (code) => {
      clearTimeout(late);
      fail(`The service ended with status ${code} before it was ready`);
    });
  });
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) {
    return;
  }
  const ended = once(child, 'exit');
  child.kill(signal);
  const late = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  await ended;
  clearTimeout(late);
}
