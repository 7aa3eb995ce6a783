// Builds dist/ from src/ and embed/: the script tag for pages that Docusaurus did not build.

import {mkdirSync, readdirSync, writeFileSync} from 'node:fs';
import {basename, dirname, join, resolve, sep} from 'node:path';
import {fileURLToPath} from 'node:url';
import {build, transform} from 'esbuild';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const embed = join(root, 'embed');

// Modules that only a build of Docusaurus has, by the file of embed/ that takes their place.
const MODULES = {
  '@docusaurus/ErrorBoundary': 'ErrorBoundary',
  '@docusaurus/Link': 'Link',
  '@docusaurus/Translate': 'Translate',
  '@docusaurus/router': 'router',
  '@docusaurus/useDocusaurusContext': 'context',
  '@docusaurus/useGlobalData': 'context',
  '@theme/CodeBlock': 'CodeBlock',
  katex: 'katex',
};

// Modules of src/ that depend on the site, by the same.
const SOURCES = {
  addresses: 'addresses',
  'answer/Diagram': 'Diagram',
  'answer/useBookUrl': 'useBookUrl',
  'highlight/useJump': 'useJump',
  'panel/ColorMode': 'ColorMode',
  'panel/useBook': 'useBook',
  'selection/readSelection': 'readSelection',
  'static/ask': 'ask',
  'webmcp/registerTools': 'tools',
};

const files = new Map(readdirSync(embed).map((name) => [basename(name).split('.')[0], join(embed, name)]));

const replace = {
  name: 'replace',
  setup({onResolve}) {
    onResolve({filter: /^(@docusaurus\/|@theme\/|katex$)/}, ({path, importer}) =>
      importer.startsWith(embed + sep) ? undefined : {path: files.get(MODULES[path])},
    );
    onResolve({filter: /^\.\.?\//}, ({path, resolveDir, importer}) => {
      const name = resolve(resolveDir, path).slice(join(root, 'src').length + 1).split(sep).join('/');
      const isOwn = importer.startsWith(embed + sep);
      return name in SOURCES && !isOwn ? {path: files.get(SOURCES[name])} : undefined;
    });
  },
};

const shared = {
  bundle: true,
  minify: true,
  format: 'iife',
  target: 'es2022',
  legalComments: 'none',
  define: {'process.env.NODE_ENV': '"production"'},
};

/** Writes the script, which contains its styles, and KaTeX beside it. */
export async function buildEmbed(outdir) {
  const {outputFiles} = await build({
    ...shared,
    minify: false, // keeps names of classes such as `Panel_title`, which no page has
    minifySyntax: true,
    minifyWhitespace: true,
    entryPoints: {robotutor: join(embed, 'index.tsx')},
    outdir,
    write: false,
    jsx: 'automatic',
    // Preact does for the panel what React does, in a tenth of the size.
    alias: {
      react: 'preact/compat',
      'react-dom': 'preact/compat',
      'react-dom/client': 'preact/compat/client',
      'react/jsx-runtime': 'preact/jsx-runtime',
    },
    loader: {'.module.css': 'local-css'},
    plugins: [replace],
  });
  const read = (end) => outputFiles.find(({path}) => path.endsWith(end)).text;
  mkdirSync(outdir, {recursive: true});
  const whole = read('.js').replace(/(["'`])ROBOTUTOR_STYLES\1/, () => JSON.stringify(read('.css')));
  const {code} = await transform(whole, {minify: true, target: shared.target});
  writeFileSync(join(outdir, 'robotutor.js'), code);
  await build({
    ...shared,
    stdin: {contents: "import katex from 'katex'; window.katex = katex;", resolveDir: root},
    outfile: join(outdir, 'robotutor-katex.js'),
  });
}
