import type * as Preset from '@docusaurus/preset-classic';
import type {Config} from '@docusaurus/types';

// A site that differs from the textbook in all that the theme could depend on: the base URL, the
// route of the docs, slashes at the end, two languages, and no formulas.
const config: Config = {
  title: 'Garden Robots',
  url: 'https://garden.example.org',
  baseUrl: '/x/',
  trailingSlash: true,
  onBrokenLinks: 'throw',
  future: {v4: true, faster: true},
  i18n: {
    defaultLocale: 'en',
    locales: ['en', 'ar'],
    localeConfigs: {ar: {direction: 'rtl'}},
  },
  themes: [
    [
      'docusaurus-theme-robotutor',
      {
        name: 'Gardener',
        greeting: 'Ask me about robots in gardens.',
        suggestions: ['How does a gripper hold a tomato?'],
        shortcut: 'mod+shift+k',
      },
    ],
  ],
  presets: [
    [
      'classic',
      {
        docs: {routeBasePath: '/', sidebarPath: undefined},
        blog: false,
      } satisfies Preset.Options,
    ],
  ],
  themeConfig: {navbar: {title: 'Garden Robots'}} satisfies Preset.ThemeConfig,
};

export default config;
