// Builds lib/ from src/: JavaScript modules, type declarations and style sheets. Then builds dist/.

import {cpSync, existsSync, mkdirSync, readdirSync, rmSync} from 'node:fs';
import {dirname, join, relative, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';
import {buildSync} from 'esbuild';
import ts from 'typescript';
import {buildEmbed} from './embed.mjs';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const src = join(root, 'src');
const lib = join(root, 'lib');

const {config} = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile);
const {options, errors} = ts.parseJsonConfigFileContent(config, ts.sys, root);
const files = readdirSync(src, {recursive: true, withFileTypes: true})
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath ?? entry.path, entry.name));

const program = ts.createProgram(
  files.filter((file) => /\.tsx?$/.test(file)),
  {
    ...options,
    noEmit: false,
    allowJs: false,
    declaration: true,
    jsx: ts.JsxEmit.ReactJSX,
    rootDir: src,
    outDir: lib,
    target: ts.ScriptTarget.ES2020,
  },
);

// ES modules name files in full, which the sources do not: './words' becomes './words.js'.
const nameFiles = (context) => (file) => {
  const complete = (specifier) => {
    const target = resolve(dirname(file.fileName), specifier.text);
    const isModule = (path) => existsSync(`${path}.ts`) || existsSync(`${path}.tsx`);
    const end = isModule(target) ? '.js' : isModule(join(target, 'index')) ? '/index.js' : '';
    const literal = context.factory.createStringLiteral(specifier.text + end, true);
    return ts.setTextRange(literal, specifier); // keeps the comment that names the chunk
  };
  const visit = (node) => {
    const isImport =
      ts.isImportDeclaration(node) ||
      ts.isExportDeclaration(node) ||
      (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword);
    const visitChild = (child) =>
      isImport && ts.isStringLiteral(child) && child.text.startsWith('.')
        ? complete(child)
        : visit(child);
    return ts.visitEachChild(node, visitChild, context);
  };
  return ts.visitNode(file, visit);
};

rmSync(lib, {recursive: true, force: true});
const result = program.emit(undefined, undefined, undefined, false, {after: [nameFiles]});
const problems = [...errors, ...ts.getPreEmitDiagnostics(program), ...result.diagnostics];
if (problems.length > 0) {
  const host = {
    getCanonicalFileName: (name) => name,
    getCurrentDirectory: () => root,
    getNewLine: () => '\n',
  };
  console.error(ts.formatDiagnostics(problems, host));
  process.exit(1);
}
// The worker is one file, so that it also runs where no bundler takes part.
const search = join(lib, 'static', 'program');
buildSync({
  entryPoints: [join(src, 'static', 'worker.ts')],
  outfile: join(search, 'worker.js'),
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
});
const wasm = 'ort-wasm-simd-threaded.wasm';
cpSync(fileURLToPath(import.meta.resolve(`onnxruntime-web/${wasm}`)), join(search, wasm));
for (const file of files.filter((name) => name.endsWith('.css'))) {
  const copy = join(lib, relative(src, file));
  mkdirSync(dirname(copy), {recursive: true});
  cpSync(file, copy);
}
await buildEmbed(join(root, 'dist'));
