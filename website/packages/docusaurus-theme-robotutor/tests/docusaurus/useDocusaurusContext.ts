/** A site with a book in English below `/book/`, and a page in Arabic below `/book/ar/`. */
export default function useDocusaurusContext(): unknown {
  return {
    siteConfig: {title: 'Robots & Books', baseUrl: '/book/ar/', markdown: {mermaid: true}},
    i18n: {
      currentLocale: 'ar',
      defaultLocale: 'en',
      localeConfigs: {en: {baseUrl: '/book/'}, ar: {baseUrl: '/book/ar/'}},
    },
  };
}
