/** The built site on a static host, with an index that is searched in the browser. */

import {execFile} from 'node:child_process';
import {createReadStream, statSync} from 'node:fs';
import {mkdtemp, rm, writeFile} from 'node:fs/promises';
import {createServer} from 'node:http';
import type {AddressInfo} from 'node:net';
import {tmpdir} from 'node:os';
import {extname, join, normalize} from 'node:path';
import {promisify} from 'node:util';
import {inject} from 'vitest';

import {BUILD, REPOSITORY} from './site';

const run = promisify(execFile);

const TYPES: Record<string, string> = {
  '.css': 'text/css',
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
};

/** A static host that tests can change: its answers by the end of a path, instead of the file. */
export interface StaticHost {
  /** The address of the book; ends with a slash. */
  book: string;
  /** The paths that were asked for. */
  asked: string[];
  /** Content that replaces the file at the end of a path; null for status 404. */
  replaced: Map<string, Buffer | string | null>;
  stop: () => Promise<void>;
}

/** Writes an index of the tests' book, and serves it with the built site. */
export async function startStaticHost(): Promise<StaticHost> {
  const exported = await mkdtemp(join(tmpdir(), 'robotutor-search-'));
  await writeFile(join(exported, 'index.html'), '');
  const {pathname: base} = new URL(inject('quoting').book);
  await run(join(REPOSITORY, '.venv/bin/rag-pipeline'), ['export-search', exported], {
    cwd: REPOSITORY,
    env: {...process.env, DATA_DIR: inject('indexDir')},
  });
  const asked: string[] = [];
  const replaced: StaticHost['replaced'] = new Map();
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? '/', 'http://host').pathname);
    asked.push(path);
    const [, content] = [...replaced].find(([end]) => path.endsWith(end)) ?? [];
    if (content === null || !path.startsWith(base)) {
      response.writeHead(404).end();
      return;
    }
    const name = normalize(path.slice(base.length));
    const file = [join(exported, name), ...['', '.html', '/index.html'].map((end) => join(BUILD, name) + end)]
      .find((found) => statSync(found, {throwIfNoEntry: false})?.isFile());
    if (content === undefined && !file) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, {'content-type': TYPES[extname(file ?? path)] ?? 'application/octet-stream'});
    if (content !== undefined) {
      response.end(content);
    } else {
      createReadStream(file ?? '').pipe(response);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const {port} = server.address() as AddressInfo;
  return {
    book: `http://127.0.0.1:${port}${base}`,
    asked,
    replaced,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await rm(exported, {recursive: true, force: true});
    },
  };
}
