import {fileURLToPath} from 'node:url';
import {defineConfig} from 'vitest/config';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

// Unit tests run without Docusaurus. These modules stand for what a site's build provides.
export default defineConfig({
  esbuild: {jsx: 'automatic'},
  test: {include: ['tests/**/*.test.{ts,tsx}']},
  esbuild: {jsx: 'automatic'},
  resolve: {
    alias: {
      '@docusaurus/Head': here('tests/docusaurus/Head.tsx'),
      '@docusaurus/Translate': here('tests/docusaurus/Translate.tsx'),
      '@docusaurus/router': here('tests/docusaurus/router.ts'),
      '@docusaurus/useBaseUrl': here('tests/docusaurus/useBaseUrl.ts'),
      '@theme/CodeBlock': here('tests/docusaurus/CodeBlock.tsx'),
    },
  },
});
