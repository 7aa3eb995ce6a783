/**
 * A chat model with OpenAI's API over real HTTP that writes what a test asks for.
 *
 * It runs in the process of the global setup. Tests control it over HTTP, because they run in
 * another process.
 */

import {createServer, type IncomingMessage, type ServerResponse} from 'node:http';
import type {AddressInfo} from 'node:net';
import {setTimeout as sleep} from 'node:timers/promises';

/** The reply of the model to a question. */
export interface Script {
  /** The HTTP status; other than 200, nothing is written. */
  status?: number;
  /**
   * The pieces of the answer, after a quote of the first source, without which a service would quote
   * the book itself. Without pieces, the model writes only the quote. A number stands for so many
   * sentences of the sources, each in a paragraph of its own.
   */
  pieces?: string[] | number;
  /** False for an answer that does not begin with a quote. */
  quotes?: false;
  /** A text of the book. The model writes it and cites the source that contains it. */
  quote?: string;
  /**
   * Further pieces, which the model writes when a test calls `release`. A number stands for so many
   * sentences that follow those of `pieces`.
   */
  held?: string[] | number;
  /** The pause before each piece. */
  pauseMs?: number;
  /** How the answer ends: in order, by a broken connection, or with silence. */
  end?: 'done' | 'cut' | 'silence';
}

/** The prompts that the model got so far, and the number of answers that it is writing now. */
export interface ModelState {
  prompts: string[];
  writing: number;
}

/** Starts the model and returns its address with a function that ends it. */
export async function startModel(): Promise<{url: string; stop: () => void}> {
  const state: ModelState = {prompts: [], writing: 0};
  let script: Script = {};
  let release = (): void => {};
  let released = Promise.resolve();
  const server = createServer(async (request, response) => {
    const body = await readBody(request);
    if (request.url === '/script') {
      release(); // an answer that is still held would never end
      script = JSON.parse(body) as Script;
      released = new Promise((resolve) => (release = resolve));
      state.prompts = [];
      response.end();
    } else if (request.url === '/release') {
      release();
      response.end();
    } else if (request.url === '/state') {
      response.end(JSON.stringify(state));
    } else if (body === '') {
      response.writeHead(404).end(); // the service looks if the address answers
    } else if (!request.url?.endsWith('/chat/completions')) {
      response.writeHead(404).end(); // such as a question for the number of tokens
    } else {
      const prompt = readPrompt(body);
      state.prompts.push(prompt);
      state.writing += 1;
      // The connection closes when the service gives up the answer.
      response.once('close', () => (state.writing -= 1));
      await write(response, script, prompt, released);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const {port} = server.address() as AddressInfo;
  const stop = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return {url: `http://127.0.0.1:${port}`, stop};
}

/** Tells the model what to reply from now on, and forgets the prompts so far. */
export async function setScript(url: string, script: Script): Promise<void> {
  await fetch(`${url}/script`, {method: 'POST', body: JSON.stringify(script)});
}

/** Lets the model write the pieces that its script holds back. */
export async function release(url: string): Promise<void> {
  await fetch(`${url}/release`, {method: 'POST'});
}

/** Returns what the model was asked since its script was set. */
export async function readState(url: string): Promise<ModelState> {
  return (await (await fetch(`${url}/state`)).json()) as ModelState;
}

async function write(
  response: ServerResponse,
  script: Script,
  prompt: string,
  released: Promise<void>,
): Promise<void> {
  if (script.status && script.status !== 200) {
    response.writeHead(script.status, {'content-type': 'application/json'});
    response.end(JSON.stringify({error: {message: 'This model does not answer.'}}));
    return;
  }
  response.writeHead(200, {'content-type': 'text/event-stream'});
  response.flushHeaders();
  const {pieces, held} = script;
  const sentences = listSentences(prompt);
  const read = (part: string[] | number, from = 0): string[] =>
    typeof part === 'number' ? sentences.slice(from, from + part).map((text) => `${text}\n\n`) : part;
  let quotes = script.quotes !== false && Array.isArray(pieces);
  const writeAll = async (part: string[]): Promise<void> => {
    const begin = quotes && part.length > 0 ? [...quote(prompt), '\n\n'] : [];
    quotes &&= part.length === 0;
    for (const piece of [...begin, ...part]) {
      await sleep(script.pauseMs ?? 5);
      if (response.destroyed) {
        return;
      }
      response.write(encode(piece, null));
    }
  };
  await writeAll(pieces === undefined ? quote(prompt, script.quote) : read(pieces));
  if (held) {
    await released;
    await writeAll(read(held, typeof pieces === 'number' ? pieces : 0));
  }
  if (response.destroyed) {
    return;
  }
  if (script.end === 'cut') {
    response.destroy();
  } else if (script.end !== 'silence') {
    response.end(`${encode('', 'stop')}data: [DONE]\n\n`);
  }
}

function encode(content: string, finish: string | null): string {
  const choice = {index: 0, delta: {content}, finish_reason: finish};
  const event = {
    id: 'scripted',
    object: 'chat.completion.chunk',
    created: 0,
    model: 'scripted',
    choices: [choice],
  };
  return `data: ${JSON.stringify(event)}\n\n`;
}

interface PromptSource {
  number: string;
  body: string;
}

/** Returns the sources of a prompt; none for a prompt such as that for a translation. */
const readSources = (prompt: string): PromptSource[] =>
  [...prompt.matchAll(/=== SOURCE (\d+) \w+ ===\n([\s\S]*?)(?=\n=== |$)/g)].map(
    ([, number, body]) => ({number: number as string, body: body as string}),
  );

/** Returns the sentences in the prose of a prompt's sources, in order, without formulas and code. */
export function listSentences(prompt: string): string[] {
  const sentences = readSources(prompt).flatMap(({body}) =>
    body
      .split('\n')
      .flatMap((line) => line.split(/(?<=[.?]) /))
      .filter((text) => /^[A-Z][^$`*_|#[\]():]{40,}\.$/.test(text)),
  );
  return [...new Set(sentences)];
}

/** Returns a text with its source, or else the first sentence of the first source, if any. */
function quote(prompt: string, text?: string): string[] {
  const sources = readSources(prompt).map(({number, body}) => ({
    number,
    body: body.replace(/\s+/g, ' '),
  }));
  if (sources.length === 0) {
    return [];
  }
  const found = text ? sources.find(({body}) => body.includes(text)) : sources[0];
  if (!found) {
    throw new Error(`No source contains ${text}`);
  }
  const sentence = text ?? /[A-Z][^.#|]+?(?=\. )/.exec(found.body)?.[0] ?? found.body;
  return `${sentence} [${found.number}].`.split(/(?<= )/);
}

function readPrompt(body: string): string {
  const {messages = []} = JSON.parse(body) as {messages?: {content: string}[]};
  return messages.map((message) => message.content).join('\n\n');
}

async function readBody(request: IncomingMessage): Promise<string> {
  let body = '';
  for await (const piece of request) {
    body += String(piece);
  }
  return body;
}
