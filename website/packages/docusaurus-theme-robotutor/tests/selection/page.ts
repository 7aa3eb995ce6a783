import {readFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

import type {Selection} from '../../src/conversation/model';
import {readSelection} from '../../src/selection/readSelection';

/** Shows an excerpt of a built page, between the navigation and the footer of a site. */
export function openPage(name: string): Element {
  const pages = join(dirname(fileURLToPath(import.meta.url)), 'pages');
  return showArticle(readFileSync(join(pages, `${name}.html`), 'utf8'));
}

/** Shows an article between the navigation and the footer of a site. */
export function showArticle(html: string): Element {
  document.body.innerHTML = `
    <nav class="navbar"><a href="/">Book</a></nav>
    <main><article><nav class="theme-doc-breadcrumbs">Module 1</nav>${html}</article>
    <nav class="pagination-nav">Next page</nav></main><footer>Colophon</footer>`;
  return document.querySelector('.theme-doc-markdown') as Element;
}

/** Returns the place of the first or last occurrence of a text within one text node. */
export function placeOf(text: string, isLast = false): [Text, number] {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let found: [Text, number] | null = null;
  while (walker.nextNode()) {
    const node = walker.currentNode as Text;
    const at = isLast ? node.data.lastIndexOf(text) : node.data.indexOf(text);
    if (at >= 0 && (isLast || !found)) found = [node, at];
  }
  if (!found) throw new Error(`the page does not contain ${text}`);
  return found;
}

/** Selects from the first occurrence of a text to the end of the last one of another text. */
export function select(from: string, to: string): globalThis.Selection {
  const [start, startOffset] = placeOf(from);
  const [end, endOffset] = placeOf(to, true);
  const selection = window.getSelection() as globalThis.Selection;
  selection.setBaseAndExtent(start, startOffset, end, endOffset + to.length);
  return selection;
}

/** Selects all that a node contains. */
export function selectAll(node: Node): globalThis.Selection {
  const selection = window.getSelection() as globalThis.Selection;
  selection.selectAllChildren(node);
  return selection;
}

/** Returns what RoboTutor reads of a selection. */
export const read = (selection: globalThis.Selection): Selection | null =>
  readSelection(selection, '/book/page');

/** Returns the Markdown of a selection. */
export const readMarkdownOf = (selection: globalThis.Selection): string | undefined =>
  read(selection)?.text;
