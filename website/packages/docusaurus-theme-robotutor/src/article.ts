/** The part of a page that contains the text of the book. */

const ARTICLES = ['.theme-doc-markdown', 'article .markdown', 'article', 'main'];

/** Says if a node belongs to RoboTutor and not to the page. */
export const isOwnNode = (node: Node): boolean =>
  (node instanceof Element ? node : node.parentElement)?.closest('[data-robotutor]') != null;

/**
 * Returns the article of a page.
 *
 * A list of blog posts has several articles. The first one that `wanted` accepts is returned.
 *
 * @returns `null` on a page without an article, such as a page that is still loading.
 */
export function findArticle(wanted: (article: Element) => boolean = () => true): Element | null {
  for (const selector of ARTICLES) {
    for (const article of Array.from(document.querySelectorAll(selector))) {
      if (!isOwnNode(article) && wanted(article)) return article;
    }
  }
  return null;
}
