import useDocusaurusContext from '@docusaurus/useDocusaurusContext';

/**
 * Returns a function that adds the base URL to a path of the book, unless the path has it.
 *
 * The base URL is that of the default locale. The service knows no other locale, and a page in
 * another language has links to the same addresses.
 */
export function useBookUrl(): (path: string) => string {
  const {i18n, siteConfig} = useDocusaurusContext();
  const base = i18n.localeConfigs[i18n.defaultLocale]?.baseUrl ?? siteConfig.baseUrl;
  return (path) => (`${path}/`.startsWith(base) ? path : base + path.slice(1));
}
