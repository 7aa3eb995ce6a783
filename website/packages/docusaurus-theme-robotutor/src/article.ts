/** The part of a page that contains the text of the book. */

const ARTICLES = ['.theme-doc-markdown', 'article .markdown', 'article', 'main, [role="main"]'];

/** Elements of an article that are not part of its text. */
export const NOT_TEXT = [
  'button',
  'iframe',
  'input:not([type="checkbox"])',
  'noscript',
  'script',
  'select',
  'style',
  'svg',
  'template',
  'textarea',
  '.docusaurus-mermaid-container',
  '.hash-link',
  '.headerlink', // that of MkDocs and Sphinx
  '.katex-html',
  '.sr-only',
  '.theme-doc-breadcrumbs',
  '.theme-doc-toc-mobile',
  '[class*="codeLineNumber"]',
  '[class*="linenumber" i]',
  '[data-footnote-backref]',
  '[data-footnote-ref]',
  '[data-robotutor]',
].join(',');

/** Says if a node belongs to RoboTutor and not to the page. */
export const isOwnNode = (node: Node): boolean =>
  (node instanceof Element ? node : node.parentElement)?.closest('[data-robotutor]') != null;

/**
 * Returns the article of a page that `wanted` accepts.
 *
 * Most pages have one article. A list of blog posts has several.
 *
 * @returns `null` on a page without an article, such as a page that is still loading.
 */
export function findArticle(wanted: (article: Element) => boolean = () => true): Element | null {
  for (const selector of ARTICLES) {
    const found = Array.from(document.querySelectorAll(selector));
    const articles = found.filter((article) => !isOwnNode(article));
    if (articles.length > 0) return articles.find(wanted) ?? null;
  }
  return null;
}

/** Returns the navigation bar if it stays at the top of the window. */
export function findFixedNavbar(): HTMLElement | null {
  const bars = Array.from(document.querySelectorAll<HTMLElement>('.navbar, header'));
  return bars.find((bar) => /sticky|fixed/.test(getComputedStyle(bar).position)) ?? null;
}

/** The titles of admonitions. */
export const ADMONITION_TITLE = '.theme-admonition > [class*="admonitionHeading"]';

/** Says if an element is the title of an admonition that its author gave no title, such as "tip". */
export function isDefaultTitle(element: Element): boolean {
  if (!element.matches(ADMONITION_TITLE)) return false;
  const name = element.textContent?.trim().toLowerCase();
  return element.parentElement?.classList.contains(`theme-admonition-${name}`) ?? false;
}
