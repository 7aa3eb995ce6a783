"""A site with several docs folders; its structure is that of the website of Docusaurus itself."""

from __future__ import annotations

from typing import Final

from rag_pipeline_tests.ingestion.site.public_sites.site import PublicSite

_SEVERAL_CONFIG: Final = """
import path from 'path';
import tabs from './src/remark/tabs';

import versions from './versions.json';
import {trialPlugins, trialRedirects, changeFrontMatter} from './_trials/trials.config';
import localized from './localized.json';

import type {Config} from '@docusaurus/types';
import type {Options as DocsOptions} from '@docusaurus/plugin-content-docs';

function isPrerelease(version: string) {
  return version.includes('alpha') || version.includes('rc');
}

function getLastVersion() {
  const firstStableVersion = versions.find((version) => !isPrerelease(version));
  return firstStableVersion ?? versions[0];
}

const isDev = process.env.NODE_ENV === 'development';
const isDeployPreview = !!process.env.NETLIFY && process.env.CONTEXT === 'deploy-preview';
const isBuildFast = !!process.env.BUILD_FAST;
const baseUrl = process.env.BASE_URL ?? '/';
const isI18nStaging = process.env.I18N_STAGING === 'true';
const isVersioningDisabled = !!process.env.DISABLE_VERSIONING || isI18nStaging;
const defaultLocale = 'en';

function getLocalizedValue(key: keyof typeof localized) {
  const values = localized[key];
  if (!values) {
    throw new Error(`${key} not found`);
  }
  return values[process.env.DOCUSAURUS_CURRENT_LOCALE ?? defaultLocale];
}

export default async function createConfigAsync() {
  return {
    title: 'Several',
    tagline: getLocalizedValue('tagline'),
    baseUrl,
    url: 'https://several.example.org',
    trailingSlash: isDeployPreview,
    i18n: {
      defaultLocale,
      locales: isDeployPreview
        ? [defaultLocale]
        : isI18nStaging
          ? [defaultLocale, 'ja']
          : [defaultLocale, 'fr'],
    },
    markdown: {
      format: 'detect',
      parseFrontMatter: async (params) => {
        const result = await params.defaultParseFrontMatter(params);
        return {...result, frontMatter: changeFrontMatter(result.frontMatter)};
      },
    },
    staticDirectories: ['static', path.join(__dirname, '_trials/assets')],
    plugins: [
      ['./src/plugins/changelog/index.js', {blogTitle: 'Changes', routeBasePath: '/changelog'}],
      [
        'content-docs',
        {
          id: 'community',
          path: 'community',
          routeBasePath: 'community',
          editUrl: ({locale, docPath}) => `https://edit.example.org/${locale}/${docPath}`,
          remarkPlugins: [tabs],
        } satisfies DocsOptions,
      ],
      ['client-redirects', {createRedirects: () => [], redirects: [...trialRedirects]}],
      './src/plugins/requests.js',
      ...trialPlugins,
      process.env.NODE_ENV === 'development' && 'debug',
    ].filter(Boolean),
    presets: [
      [
        'classic',
        {
          docs: {
            path: 'docs',
            sidebarPath: 'sidebars.ts',
            disableVersioning: isVersioningDisabled,
            lastVersion: isDev || isVersioningDisabled ? 'current' : getLastVersion(),
            onlyIncludeVersions: (() => {
              if (isBuildFast) {
                return ['current'];
              } else if (!isVersioningDisabled && (isDev || isDeployPreview)) {
                return ['current', ...versions.slice(0, 2)];
              }
              return undefined;
            })(),
            versions: {current: {label: `Canary`}},
          },
          blog: {path: 'blog', remarkPlugins: [tabs], postsPerPage: 5},
          pages: {remarkPlugins: [tabs]},
          theme: {customCss: ['./src/css/custom.css']},
        },
      ],
    ],
  } satisfies Config;
}
"""

_TRIALS: Final = """
import type {PluginConfig, Plugin} from '@docusaurus/types';

export function changeFrontMatter(frontMatter: {[key: string]: unknown}) {
  return {...frontMatter, unlisted: true};
}

export const trialPlugins: PluginConfig[] = [
  [
    'content-docs', // shorthand
    {
      id: 'docs-trials',
      routeBasePath: '/trials/docs',
      versions: {current: {noIndex: true}},
      path: '_trials/_docs trials',
      sidebarItemsGenerator(args) {
        return args.defaultSidebarItemsGenerator(args);
      },
    },
  ],
  [
    '@docusaurus/plugin-content-blog', // longhand
    {id: 'blog-trials', path: '_trials/_blog trials', routeBasePath: '/trials/blog'},
  ],
  [
    require.resolve('@docusaurus/plugin-content-pages'), // full path
    {id: 'pages-trials', path: '_trials/_pages trials', routeBasePath: '/trials/pages'},
  ],
  function clientModuleTrial(): Plugin {
    return {name: 'client-module-trial'};
  },
];

export const trialRedirects: {from: string[]; to: string}[] = [{from: ['/home/'], to: '/'}];
"""

SEVERAL: Final = PublicSite(
    files={
        "website/docusaurus.config.ts": _SEVERAL_CONFIG,
        "website/_trials/trials.config.ts": _TRIALS,
        "website/src/remark/tabs.ts": "export default () => (tree: unknown) => tree;",
        "website/src/plugins/changelog/index.js": "module.exports = () => ({name: 'changelog'});",
        "website/src/plugins/requests.js": "module.exports = () => ({name: 'requests'});",
        "website/localized.json": '{"tagline": {"en": "Several folders"}}',
        "website/versions.json": '["3.1", "3.0"]',
    },
    pages=(
        "website/docs/intro.mdx",
        "website/versioned_docs/version-3.1/intro.mdx",
        "website/versioned_docs/version-3.0/intro.mdx",
        "website/community/team.mdx",
        "website/_trials/_docs trials/index.md",
        "website/_trials/_blog trials/2024-01-02-trial.md",
        "website/_trials/_pages trials/plain.md",
        "website/blog/2024/01-02-news/index.mdx",
        "website/src/pages/versions.mdx",
        "website/i18n/fr/docusaurus-plugin-content-docs/current/intro.mdx",
    ),
    values={
        "docs_dir": "docs",
        "site_base_url": "https://several.example.org/",
        "site_route_base_path": "docs/next",
        "site_trailing_slash": False,
        "site_markdown_format": "detect",
    },
    routes={
        f"{name}:{locale}": base + route
        for locale, base in {"en": "", "fr": "fr/"}.items()
        for name, route in {
            "docs@current": "docs/next",
            "docs@3.1": "docs",
            "docs@3.0": "docs/3.0",
            "community": "community",
            "docs-trials": "trials/docs",
            "blog": "blog",
            "blog-trials": "trials/blog",
            "pages": "",
            "pages-trials": "trials/pages",
        }.items()
    },
    latest={
        f"{name}:{locale}"
        for name in (
            *("docs@3.1", "community", "docs-trials", "blog", "blog-trials"),
            *("pages", "pages-trials"),
        )
        for locale in ("en", "fr")
    },
    notes=("./src/plugins/changelog/index.js with the route /changelog",),
)
