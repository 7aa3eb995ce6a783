/** The headings of a built page. */

import type {Element, Nodes} from 'hast';
import {fromHtml} from 'hast-util-from-html';
import {toText} from 'hast-util-to-text';
import {EXIT, SKIP, visit} from 'unist-util-visit';

/** A heading as readers see it. */
export interface Heading {
  /** 1 to 6. */
  level: number;
  /** The anchor; null if the heading has none, which is usual for the title of a page. */
  id: string | null;
  text: string;
}

/**
 * Returns the headings of a page's text in their order, with the title above the text of a blog post.
 *
 * Headings outside of the text, such as those of a sidebar, are left out. So is the sign behind a
 * heading that links to it.
 */
export function readHeadings(html: string): Heading[] {
  const page = fromHtml(html);
  const article = find(page, ({tagName}) => tagName === 'article') ?? page;
  const text = find(article, (node) => hasClass(node, 'markdown')) ?? article;
  const headings = listHeadings(text);
  if (!headings.some(({level}) => level === 1)) {
    headings.unshift(...listHeadings(article).filter(({level}) => level === 1));
  }
  return headings;
}

/** Returns the first element that passes the test. */
function find(page: Nodes, test: (node: Element) => boolean): Element | undefined {
  let found: Element | undefined;
  visit(page, 'element', (node) => {
    if (!test(node)) {
      return undefined;
    }
    found = node;
    return EXIT;
  });
  return found;
}

function listHeadings(text: Nodes): Heading[] {
  const headings: Heading[] = [];
  visit(text, 'element', (node) => {
    const level = /^h([1-6])$/.exec(node.tagName)?.[1];
    if (!level) {
      return undefined;
    }
    const {id} = node.properties;
    headings.push({
      level: Number(level),
      id: typeof id === 'string' && id ? id : null,
      text: toText({...node, children: node.children.filter((child) => !isHashLink(child))})
        .replace(/\s+/g, ' ')
        .trim(),
    });
    return SKIP;
  });
  return headings;
}

const hasClass = (node: Element, name: string): boolean =>
  Array.isArray(node.properties.className) && node.properties.className.includes(name);

const isHashLink = (node: Nodes): boolean => node.type === 'element' && hasClass(node, 'hash-link');
