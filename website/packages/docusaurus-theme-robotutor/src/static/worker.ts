/** The worker that searches in the browser. Its files are in the folder of the index. */

import * as ort from 'onnxruntime-web/wasm';
import {answer} from './answer';
import {Engine} from './engine';
import type {SearchMessage, SearchProblem, SearchReply} from './messages';
import {FORMAT, IndexError, readIndex} from './searchIndex';

class SearchError extends Error {
  readonly problem: SearchProblem;

  constructor(problem: SearchProblem) {
    super(problem);
    this.problem = problem;
  }
}

const scope = self as unknown as Worker;
let loading: Promise<Engine> | null = null;

scope.addEventListener('message', ({data}: MessageEvent<SearchMessage>) => {
  void reply(data).then((sent) => scope.postMessage(sent));
});

async function reply({id, request}: SearchMessage): Promise<SearchReply> {
  try {
    loading ??= load();
    const engine = await loading;
    return {id, events: await answer(engine, request)};
  } catch (error) {
    loading = null; // the next question tries again
    if (error instanceof IndexError) {
      return {id, problem: error.isOtherVersion ? 'version' : 'missing'};
    }
    return {id, problem: error instanceof SearchError ? error.problem : 'failed'};
  }
}

async function load(): Promise<Engine> {
  if (typeof WebAssembly === 'undefined') {
    throw new SearchError('blocked');
  }
  const manifest: unknown = await fetchFile('manifest.json').then((found) => found.json());
  if ((manifest as {format?: number} | null)?.format !== FORMAT) {
    throw new SearchError('version');
  }
  const read = async (name: string): Promise<ArrayBuffer> => (await fetchFile(name)).arrayBuffer();
  const [index, session] = await Promise.all([
    read('index.bin').then(readIndex),
    Promise.all([read('graph.onnx'), read('model.onnx')]).then(openModel),
  ]);
  return new Engine(index, (ids) => infer(session, ids));
}

async function fetchFile(name: string): Promise<Response> {
  const response = await fetch(new URL(name, self.location.href)).catch(() => null);
  if (!response?.ok) {
    throw new SearchError('missing');
  }
  return response;
}

async function openModel([graph, weights]: [ArrayBuffer, ArrayBuffer]): Promise<ort.InferenceSession> {
  ort.env.wasm.numThreads = 1; // several threads need headers that static hosts do not send
  ort.env.wasm.wasmPaths = {
    wasm: new URL('ort-wasm-simd-threaded.wasm', self.location.href).href,
  };
  try {
    return await ort.InferenceSession.create(new Uint8Array(graph), {
      executionProviders: ['wasm'],
      externalData: [{path: 'model.onnx', data: new Uint8Array(weights)}],
    });
  } catch {
    throw new SearchError('blocked');
  }
}

async function infer(session: ort.InferenceSession, ids: readonly number[]): Promise<Float32Array> {
  const tensor = (values: readonly number[]): ort.Tensor =>
    new ort.Tensor('int64', BigInt64Array.from(values, BigInt), [1, ids.length]);
  const found = await session.run({
    input_ids: tensor(ids),
    attention_mask: tensor(ids.map(() => 1)),
    token_type_ids: tensor(ids.map(() => 0)),
  });
  const [output] = session.outputNames;
  return found[output!]!.data as Float32Array;
}
