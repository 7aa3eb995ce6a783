/** Raw HTML in Markdown, of which only the words are kept. */

import type {Nodes} from 'mdast';

const NAMES =
  'a abbr article aside audio b blockquote button center cite code col colgroup dd del details ' +
  'dfn div dl dt em figcaption figure font footer form h1 h2 h3 h4 h5 h6 head header hr html i ' +
  'iframe img input ins kbd li link main mark meta nav object ol p picture pre q s samp script ' +
  'section small source span strike strong style sub summary sup svg table tbody td textarea ' +
  'tfoot th thead time tr u ul var video wbr';
const TAGS = new Set(NAMES.split(' '));

/**
 * Replaces raw HTML by its words.
 *
 * Comments and the tags of HTML are removed. Other words between angle brackets, such as
 * `vector<int>`, are part of the text and stay.
 */
export function keepWordsOfHtml(node: Nodes): void {
  if (!('children' in node)) {
    return;
  }
  node.children.forEach((child, at) => {
    if (child.type !== 'html') {
      keepWordsOfHtml(child);
      return;
    }
    const text = readWords(child.value);
    const words = {type: 'text' as const, value: text, position: child.position};
    const isBlock = node.type !== 'paragraph' && 'children' in node && isFlow(node);
    if (/^<br\s*\/?>$/i.test(child.value.trim()) && !isBlock) {
      node.children[at] = {type: 'break'};
    } else {
      node.children[at] = isBlock ? {type: 'paragraph', children: [words]} : words;
    }
  });
}

function isFlow(node: Nodes): boolean {
  return ['root', 'blockquote', 'listItem', 'footnoteDefinition'].includes(node.type);
}

function readWords(html: string): string {
  return html
    .replace(/<!--[\s\S]*?(?:-->|$)/g, '')
    .replace(/<br\s*\/?>/gi, '\n')
    .replace(/<\/?([a-z][a-z0-9-]*)(?=[\s/>])[^<>]*>/gi, (tag, name: string) =>
      TAGS.has(name.toLowerCase()) ? '' : tag,
    );
}
