"""Three sites with the structure of public Docusaurus sites: configuration, folders and options.

The structure is that of the websites of Jest, React Native and Docusaurus itself, unlike the texts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class PublicSite:
    """A site, and what must be found on it.

    Attributes:
        files: The text of each file of the repository except Markdown files.
        pages: The Markdown files.
        values: The value of each setting.
        routes: The address of each source below the URL of the site.
        latest: The sources that readers get unless they choose a version.
        guesses: The settings that are guesses if the configuration is not run.
        notes: A text that each note contains if the configuration is not run, in their order.
        notes_of_node: The same if it is run.
    """

    files: dict[str, str]
    pages: tuple[str, ...]
    values: dict[str, str | bool]
    routes: dict[str, str]
    latest: set[str]
    guesses: set[str] = field(default_factory=set)
    notes: tuple[str, ...] = ()
    notes_of_node: tuple[str, ...] = ()

    def write(self, root: Path) -> Path:
        """Write the repository of the site, and return the folder of the site."""
        for name, text in self.files.items() | {
            (page, f"# {page}\n\nText.\n") for page in self.pages
        }:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return root / "website"


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
    notes=("The locale pt-BR has no translated page",),
    notes_of_node=("The locale pt-BR has no translated page",),
)

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
    guesses={"site_route_base_path"},
    notes=("A guess: the versions of docs, because `onlyIncludeVersions` is computed in line 52",),
)

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
    guesses={"site_base_url", "site_trailing_slash", "site_route_base_path"},
    notes=(
        "A guess: the versions of docs, because `disableVersioning` is computed",
        "Not read: 1 plugin in line",
        "The plugin ./src/plugins/changelog/index.js has the route /changelog",
        "A guess: the locales, because `i18n.locales` is computed",
    ),
    notes_of_node=("The plugin ./src/plugins/changelog/index.js has the route /changelog",),
)

PUBLIC_SITES: Final = {"versioned": VERSIONED, "typed": TYPED, "several": SEVERAL}
