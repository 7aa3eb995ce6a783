/**
 * Compares the search in the browser with the library, on the same index.
 *
 *   node scripts/compare-static-search.mjs FOLDER EXPECTED
 *
 * `FOLDER` is what `rag-pipeline export-search` wrote. `EXPECTED` is a JSON file with a list of
 * `{"question", "hits": [chunk ids], "level"}`. Prints the shares of equal results as JSON.
 * `python -m benchmarks.static_search` writes both and runs this.
 */

import {mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {join} from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';
import {buildSync} from 'esbuild';
import * as ort from 'onnxruntime-web/wasm';

const [folder, expectedFile] = process.argv.slice(2);
const website = fileURLToPath(new URL('..', import.meta.url));
const src = join(website, 'packages/docusaurus-theme-robotutor/src/static');
const built = mkdtempSync(join(website, 'node_modules/.compare-'));
try {
  buildSync({
    stdin: {
      contents: "export {Engine} from './engine'; export {readIndex} from './searchIndex';",
      resolveDir: src,
      loader: 'ts',
    },
    outfile: join(built, 'engine.mjs'),
    bundle: true,
    format: 'esm',
    platform: 'node',
  });
  const {Engine, readIndex} = await import(pathToFileURL(join(built, 'engine.mjs')).href);
  const read = (name) => new Uint8Array(readFileSync(join(folder, name))).buffer;
  // Processor time, because other programs may run at the same time.
  const measure = () => Object.values(process.cpuUsage()).reduce((one, other) => one + other) / 1000;
  const began = measure();
  const index = await readIndex(read('index.bin'));
  ort.env.wasm.numThreads = 1;
  const session = await ort.InferenceSession.create(new Uint8Array(read('graph.onnx')), {
    executionProviders: ['wasm'],
    externalData: [{path: 'model.onnx', data: new Uint8Array(read('model.onnx'))}],
  });
  const infer = async (ids) => {
    const tensor = (values) =>
      new ort.Tensor('int64', BigInt64Array.from(values, BigInt), [1, ids.length]);
    const found = await session.run({
      input_ids: tensor(ids),
      attention_mask: tensor(ids.map(() => 1)),
      token_type_ids: tensor(ids.map(() => 0)),
    });
    return found[session.outputNames[0]].data;
  };
  const engine = new Engine(index, infer);
  const expected = JSON.parse(readFileSync(expectedFile, 'utf8'));
  const equal = {first: 0, same_five: 0, same_order: 0, level: 0};
  const times = [];
  let first = 0;
  for (const {question, hits, level} of expected) {
    const asked = measure();
    const result = await engine.search(question);
    times.push(measure() - asked);
    first ||= measure() - began;
    const found = result.hits.map(({at}) => index.passages[at].chunk_id);
    equal.first += found[0] === hits[0];
    equal.same_five += [...found].sort().join() === [...hits].sort().join();
    equal.same_order += found.join() === hits.join();
    equal.level += result.grounding.level === level;
  }
  times.sort((one, other) => one - other);
  const shares = Object.fromEntries(
    Object.entries(equal).map(([name, count]) => [name, count / expected.length]),
  );
  const at = (share) => Math.round(times[Math.floor(share * (times.length - 1))]);
  console.log(
    JSON.stringify({
      questions: expected.length,
      ...shares,
      first_answer_cpu_ms: Math.round(first),
      p50_cpu_ms: at(0.5),
      p95_cpu_ms: at(0.95),
    }),
  );
} finally {
  rmSync(built, {recursive: true});
}
