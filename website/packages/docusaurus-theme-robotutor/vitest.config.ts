import {fileURLToPath} from 'node:url';
import {defineConfig} from 'vitest/config';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

// Unit tests run without Docusaurus. These modules stand for what a site's build provides.
export default defineConfig({
  esbuild: {jsx: 'automatic'},
  // No test is meant to reach the limit, also on a slow machine.
  test: {include: ['tests/**/*.test.{ts,tsx}'], testTimeout: 120_000, hookTimeout: 120_000},
  resolve: {
    alias: {
      '@docusaurus/ErrorBoundary': here('embed/ErrorBoundary.tsx'),
      '@docusaurus/Link': here('embed/Link.tsx'),
      '@docusaurus/Head': here('tests/docusaurus/Head.tsx'),
      '@docusaurus/Translate': here('tests/docusaurus/Translate.tsx'),
      '@docusaurus/router': here('tests/docusaurus/router.ts'),
      '@docusaurus/theme-common/internal': here('tests/docusaurus/colorMode.tsx'),
      '@docusaurus/theme-common': here('tests/docusaurus/colorMode.tsx'),
      '@docusaurus/useBaseUrl': here('tests/docusaurus/useBaseUrl.ts'),
      '@docusaurus/useDocusaurusContext': here('tests/docusaurus/useDocusaurusContext.ts'),
      '@docusaurus/useGlobalData': here('tests/docusaurus/globalData.ts'),
      '@theme-init/DocBreadcrumbs': here('tests/docusaurus/DocBreadcrumbs.tsx'),
      '@theme-init/Root': here('tests/docusaurus/Root.tsx'),
      '@theme/CodeBlock': here('embed/CodeBlock.tsx'),
      '@theme/Mermaid': here('tests/docusaurus/Mermaid.tsx'),
    },
  },
});
