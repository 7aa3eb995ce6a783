"""A site with a TypeScript configuration; its structure is that of the website of React Native."""

from __future__ import annotations

from typing import Final

from rag_pipeline_tests.ingestion.site.public_sites.site import PublicSite

_TYPESCRIPT_CONFIG: Final = """
import type * as PluginContentDocs from '@docusaurus/plugin-content-docs';
import type * as Preset from '@docusaurus/preset-classic';
import type {Config} from '@docusaurus/types';
import path from 'path';

import users from './showcase.json';
import versions from './versions.json';
import {languages, mainLanguage as defaultLocale} from './languages';

const lastVersion = versions[0];
const copyright = `Copyright ${new Date().getFullYear()}`;

export interface EditUrlButton {
  label: string;
  href: string;
}

const commonDocsOptions = {
  breadcrumbs: false,
  editUrl: (options => {
    const buttons: EditUrlButton[] = [{label: 'Edit', href: `docs/${options.docPath}`}];
    if (options.version !== 'current') {
      const place = path.posix.join('website', options.versionDocsDirPath, options.docPath);
      buttons.push({label: options.version === lastVersion ? 'Current' : 'Old', href: place});
    }
    return JSON.stringify(buttons);
  }) as PluginContentDocs.EditUrlFunction,
  remarkPlugins: [require('./plugins/player')],
};

const isDeployPreview = process.env.PREVIEW_DEPLOY === 'true';

const config: Config = {
  future: {faster: (process.env.FASTER ?? 'false') === 'true'},
  title: 'Typed',
  url: 'https://typed.example.org',
  baseUrl: '/',
  clientModules: [require.resolve('./modules/jump.js')],
  trailingSlash: false, // because relative links
  customFields: {users, id: '5'},
  i18n: {defaultLocale, locales: [defaultLocale, ...languages]},
  onBrokenLinks: 'warn',
  presets: [
    [
      '@docusaurus/preset-classic',
      {
        docs: {
          path: '../docs',
          sidebarPath: require.resolve('./sidebars'),
          editCurrentVersion: true,
          onlyIncludeVersions: isDeployPreview ? ['current', ...versions.slice(0, 2)] : undefined,
          versions: {[lastVersion]: {badge: false}},
          ...commonDocsOptions,
        },
        blog: {path: 'blog', feedOptions: {type: 'all', copyright}, onInlineAuthors: 'ignore'},
      } satisfies Preset.Options,
    ],
  ],
  plugins: [
    'docusaurus-plugin-sass',
    [
      'content-docs',
      {
        id: 'architecture',
        path: 'architecture',
        routeBasePath: '/architecture',
        sidebarPath: require.resolve('./sidebars'),
        ...commonDocsOptions,
      } satisfies PluginContentDocs.Options,
    ],
    [
      'content-docs',
      {
        id: 'community',
        path: path.resolve(__dirname, 'community'),
        routeBasePath: '/community',
        ...commonDocsOptions,
      } satisfies PluginContentDocs.Options,
    ],
  ],
};

module.exports = config;
"""

TYPED: Final = PublicSite(
    files={
        "website/docusaurus.config.ts": _TYPESCRIPT_CONFIG,
        "website/languages.ts": (
            "export const mainLanguage = 'en';\nexport const languages: string[] = ['ko'];\n"
        ),
        "website/showcase.json": "[]",
        "website/versions.json": '["0.80", "0.79"]',
        "website/sidebars.js": "module.exports = {};",
        "website/modules/jump.js": "",
        "website/plugins/player.js": "module.exports = () => (tree) => tree;",
    },
    pages=(
        "docs/start.md",
        "website/versioned_docs/version-0.80/start.md",
        "website/versioned_docs/version-0.79/start.md",
        "website/architecture/overview.md",
        "website/community/overview.mdx",
        "website/blog/2024-01-02-news.md",
        "website/i18n/ko/docusaurus-plugin-content-docs-community/current/overview.mdx",
    ),
    values={
        "docs_dir": "../docs",
        "site_base_url": "https://typed.example.org/",
        "site_route_base_path": "docs/next",
        "site_trailing_slash": False,
        "site_markdown_format": "mdx",
    },
    routes={
        f"{name}:{locale}": base + route
        for locale, base in {"en": "", "ko": "ko/"}.items()
        for name, route in {
            "docs@current": "docs/next",
            "docs@0.80": "docs",
            "docs@0.79": "docs/0.79",
            "architecture": "architecture",
            "community": "community",
            "blog": "blog",
        }.items()
    },
    latest={
        f"{name}:{locale}"
        for name in ("docs@0.80", "architecture", "community", "blog")
        for locale in ("en", "ko")
    },
)
