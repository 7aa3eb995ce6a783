import type {Config} from '@docusaurus/types';
import type * as Preset from '@docusaurus/preset-classic';
import rehypeKatex from 'rehype-katex';
import remarkMath from 'remark-math';

import failOnFormulaError from './src/plugins/failOnFormulaError';
import {darkCode, lightCode} from './src/prismThemes';

// The pipeline's settings for citations repeat baseUrl, routeBasePath and trailingSlash, and a test
// compares them. Change both in the same commit.
const config: Config = {
  title: 'Physical AI & Humanoid Robotics',
  tagline: 'A textbook on robots that sense, decide and move in the real world',
  favicon: 'img/favicon.svg',

  // The host that serves the site. The paths of the pages do not depend on it.
  url: process.env.SITE_URL || 'https://example.github.io',
  baseUrl: '/physical-ai-robotics-textbook/',
  trailingSlash: false,

  onBrokenLinks: 'throw',
  onBrokenAnchors: 'throw',
  onDuplicateRoutes: 'throw',

  future: {
    v4: true,
    faster: {
      swcJsLoader: true,
      swcJsMinimizer: true,
      swcHtmlMinimizer: true,
      lightningCssMinimizer: true,
      mdxCrossCompilerCache: true,
      rspackBundler: true,
      rspackPersistentCache: true,
      ssgWorkerThreads: true,
      // No page shows dates or authors from the Git history, so the build does not read it.
      gitEagerVcs: false,
    },
  },

  i18n: {defaultLocale: 'en', locales: ['en']},

  markdown: {
    mermaid: true,
    hooks: {
      onBrokenMarkdownLinks: 'throw',
      onBrokenMarkdownImages: 'throw',
    },
  },
  themes: [
    '@docusaurus/theme-mermaid',
    [
      // Search in the browser: the build writes an index, so no search service is needed.
      '@easyops-cn/docusaurus-search-local',
      {
        docsRouteBasePath: 'docs',
        indexBlog: false,
        indexPages: false,
        // The name of the index contains its hash, so that browsers may keep it.
        hashed: 'filename',
        // A formula is in the page twice, as drawn symbols and as MathML.
        ignoreCssSelectors: ['.katex-mathml'],
        explicitSearchResultPath: true,
      },
    ],
    // The panel that answers questions. `rag-pipeline serve` has the site and the service at one
    // address; a site on another host names the service's address here.
    [
      'docusaurus-theme-robotutor',
      {
        serviceUrl: process.env.ROBOTUTOR_URL ?? '',
        enabled: process.env.ROBOTUTOR !== 'off',
        // `make site` writes the Markdown file of each page after the build.
        copyPage: true,
      },
    ],
  ],

  presets: [
    [
      'classic',
      {
        docs: {
          routeBasePath: 'docs',
          sidebarPath: './sidebars.ts',
          remarkPlugins: [remarkMath],
          rehypePlugins: [rehypeKatex, failOnFormulaError],
        },
        blog: false,
        theme: {
          customCss: './src/css/custom.css',
        },
      } satisfies Preset.Options,
    ],
  ],

  themeConfig: {
    colorMode: {respectPrefersColorScheme: true},
    docs: {sidebar: {hideable: true, autoCollapseCategories: true}},
    tableOfContents: {minHeadingLevel: 2, maxHeadingLevel: 3},
    navbar: {
      title: 'Physical AI & Humanoid Robotics',
      logo: {alt: '', src: 'img/logo.svg', srcDark: 'img/logo-dark.svg'},
      items: [
        {type: 'docSidebar', sidebarId: 'textbook', label: 'Read', position: 'left'},
        {to: '/docs/syllabus', label: 'Syllabus', position: 'left'},
        {to: '/docs/glossary', label: 'Glossary', position: 'left'},
      ],
    },
    footer: {
      links: [
        {
          title: 'Modules',
          items: [
            {label: 'Foundations and ROS 2', to: '/docs/module-1'},
            {label: 'Simulation with Gazebo', to: '/docs/module-2'},
            {label: 'Isaac and autonomy', to: '/docs/module-3'},
            {label: 'Humanoids and VLA', to: '/docs/module-4'},
          ],
        },
        {
          title: 'The course',
          items: [
            {label: 'Syllabus', to: '/docs/syllabus'},
            {label: 'Learning objectives', to: '/docs/learning-objectives'},
            {label: 'Hardware', to: '/docs/hardware-requirements'},
            {label: 'Assessments', to: '/docs/assessments'},
          ],
        },
        {
          title: 'At the end',
          items: [
            {label: 'Capstone project', to: '/docs/module-4/capstone-project'},
            {label: 'Conclusion', to: '/docs/conclusion'},
            {label: 'Glossary', to: '/docs/glossary'},
            {label: 'Index of tags', to: '/docs/tags'},
          ],
        },
      ],
    },
    prism: {
      theme: lightCode,
      darkTheme: darkCode,
      additionalLanguages: ['bash', 'cmake', 'diff', 'docker', 'ini', 'toml'],
    },
    mermaid: {
      theme: {light: 'neutral', dark: 'dark'},
      // Diagrams keep their natural size. If one is too wide, it scrolls, so that its labels stay readable.
      options: {
        flowchart: {useMaxWidth: false, nodeSpacing: 24, rankSpacing: 36, padding: 10},
        sequence: {useMaxWidth: false, wrap: true, actorMargin: 10, width: 110},
        state: {useMaxWidth: false, nodeSpacing: 30, rankSpacing: 36},
        gantt: {useMaxWidth: false, useWidth: 730, fontSize: 13, sectionFontSize: 13, barHeight: 26},
      },
    },
  } satisfies Preset.ThemeConfig,
};

export default config;
