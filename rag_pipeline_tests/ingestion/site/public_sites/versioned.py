"""A site with versions and locales; its structure is that of the website of Jest."""

from __future__ import annotations

from typing import Final

from rag_pipeline_tests.ingestion.site.public_sites.site import PublicSite

_VERSIONED_CONFIG: Final = r"""
'use strict';

const path = require('path');
const fs = require('fs');
const i18n = require('./i18n');
const ArchivedVersions = require('./archivedVersions.json');

const themeColor = '#123456';
const settings = JSON.parse(fs.readFileSync(path.resolve(__dirname, '../settings.json'), 'utf8'));
const names = new Map(Object.entries(settings.names).map(([text, locale]) => [locale, text]));

module.exports = {
  i18n,
  title: 'Versioned',
  url: 'https://versioned.example.org',
  baseUrl: '/',
  onBrokenLinks: 'warn',
  presets: [
    [
      '@docusaurus/preset-classic',
      {
        docs: {
          showLastUpdateAuthor: true,
          editUrl: ({locale, versionDocsDirPath, docPath}) => {
            const text = locale === 'en' ? 'en' : names.get(locale) || locale;
            return `https://edit.example.org/${text}/${versionDocsDirPath}/${docPath}`;
          },
          path: '../docs',
          lastVersion: '2.0',
          sidebarPath: path.resolve(__dirname, './sidebars.json'),
          remarkPlugins: [[require('./remark'), {sync: true}]],
        },
        blog: {path: 'blog', blogSidebarCount: 'ALL'},
        theme: {customCss: [path.resolve('src/css/custom.css')]},
        pages: {remarkPlugins: [[require('./remark'), {sync: true}]]},
      },
    ],
  ],
  plugins: [
    ['@docusaurus/plugin-client-redirects', {fromExtensions: ['html']}],
    ['@docusaurus/plugin-pwa', {pwaHead: [{tagName: 'meta', content: themeColor}]}],
  ],
  themeConfig: {
    navbar: {
      items: [
        ...Object.entries(ArchivedVersions).map(([name, url]) => ({to: url, label: name})),
        {type: 'localeDropdown', position: 'right'},
      ],
    },
  },
};
"""

_LOCALES: Final = """
// Only some of the languages are enabled.
const locales = ['en', 'ja', 'pt-BR'];
const localeConfigs = {en: {label: 'English'}, ja: {label: 'Japanese'}, 'pt-BR': {label: 'PT'}};

module.exports = {defaultLocale: 'en', locales, localeConfigs};
"""

_JAPANESE: Final = "website/i18n/ja/docusaurus-plugin-content"

VERSIONED: Final = PublicSite(
    files={
        "website/docusaurus.config.js": _VERSIONED_CONFIG,
        "website/i18n.js": _LOCALES,
        "website/remark.js": "module.exports = () => (tree) => tree;",
        "website/archivedVersions.json": '{"1.0": "https://old.example.org"}',
        "website/versions.json": '["3.0-rc", "2.0", "1.5"]',
        "website/sidebars.json": "{}",
        "settings.json": '{"names": {"japanese": "ja"}}',
    },
    pages=(
        "docs/GettingStarted.md",
        *(f"website/versioned_docs/version-{name}/Start.md" for name in ("3.0-rc", "2.0", "1.5")),
        "website/blog/2024-01-02-news.md",
        "website/src/pages/help.md",
        f"{_JAPANESE}-docs/version-2.0/Start.md",
        f"{_JAPANESE}-blog/2024-01-02-news.md",
    ),
    values={
        "docs_dir": "../docs",
        "site_base_url": "https://versioned.example.org/",
        "site_route_base_path": "docs/next",
        "site_trailing_slash": "open",
        "site_markdown_format": "mdx",
    },
    routes={
        f"{name}:{locale}": base + route
        for locale, base in {"en": "", "ja": "ja/"}.items()
        for name, route in {
            "docs@current": "docs/next",
            "docs@3.0-rc": "docs/3.0-rc",
            "docs@2.0": "docs",
            "docs@1.5": "docs/1.5",
            "blog": "blog",
            "pages": "",
        }.items()
    },
    latest={
        f"{name}:{locale}" for name in ("docs@2.0", "blog", "pages") for locale in ("en", "ja")
    },
    notes=("i18n/pt-BR",),
)
