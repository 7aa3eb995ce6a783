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
 * Returns the headings of a page's text in their order.
 *
 * Headings outside of the text, such as those of a sidebar, are left out. So is the sign behind a
 * heading that links to it.
 */
export function readHeadings(html: string): Heading[] {
  const headings: Heading[] = [];
  visit(findText(fromHtml(html)), 'element', (node) => {
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

/** Returns the element with the text of the page, or the whole page if it has no such element. */
function findText(page: Nodes): Nodes {
  let text: Nodes = page;
  visit(page, 'element', (node) => {
    if (!hasClass(node, 'markdown')) {
      return undefined;
    }
    text = node;
    return EXIT;
  });
  return text;
}

const hasClass = (node: Element, name: string): boolean =>
  Array.isArray(node.properties.className) && node.properties.className.includes(name);

const isHashLink = (node: Nodes): boolean => node.type === 'element' && hasClass(node, 'hash-link');
