/** The selected part of an article as Markdown. */

import {isDefaultTitle} from '../article';
import {containsNode, containsText, isLeftOut, touches} from './selectedPart';
import {writeCodeBlock} from './writeCode';
import {writeParagraph} from './writeInline';
import {writeTable} from './writeTable';

const BLOCKS = [
  'address, article, aside, blockquote, dd, details, div, dl, dt, fieldset, figcaption, figure',
  'footer, form, h1, h2, h3, h4, h5, h6, header, hr, li, main, nav, ol, p, pre, section, summary',
  'table, ul, .katex-display',
].join(',');

const isBlock = (node: Node): node is Element =>
  node instanceof Element &&
  (node.matches(BLOCKS) || (!node.matches('.katex') && node.querySelector(BLOCKS) !== null));

const indent = (text: string, by: string): string => text.replace(/\n(?=[^\n])/g, `\n${by}`);

/** Returns the selected items of a list. A part of a single item has no marker. */
function writeList(range: Range, list: Element): string {
  const all = Array.from(list.children).filter((child) => child.matches('li'));
  const first = Number(list.getAttribute('start') ?? 1);
  let number = first - 1;
  const items = all.map((item) => {
    number = item.hasAttribute('value') ? Number(item.getAttribute('value')) : number + 1;
    const blocks = range.intersectsNode(item) && !isLeftOut(item) ? writeBlocks(range, item) : [];
    return {item, blocks, marker: list.matches('ol') ? `${number}. ` : '- '};
  });
  const selected = items.filter(({blocks}) => blocks.length > 0);
  return selected
    .map(({item, blocks, marker}) => {
      const text = blocks.map(({text}) => text);
      const joined = blocks.reduce(
        (before, {text, isList}, at) => before + (at === 0 ? '' : isList ? '\n' : '\n\n') + text,
        '',
      );
      // The item's own text is outside of the selection, so the inner list takes its place.
      if (blocks[0]?.isList && !startsWithList(item)) return joined;
      const isMarked = selected.length > 1 || containsText(range, item);
      return isMarked ? marker + indent(joined, ' '.repeat(marker.length)) : text.join('\n\n');
    })
    .join('\n');
}

const startsWithList = (item: Element): boolean =>
  /^[OU]L$/.test(
    Array.from(item.childNodes).find((node) => node.textContent?.trim())?.nodeName ?? '',
  );

/** Returns the panel of each tab that is open, below the name of the tab. */
function writeTabs(range: Range, tabs: Element): Block[] {
  const selected = tabs.querySelector('[role="tab"][aria-selected="true"]');
  const name = selected && touches(range, selected) ? (selected.textContent?.trim() ?? '') : '';
  const panels = Array.from(tabs.children).filter((child) => !child.matches('[role="tablist"]'));
  const blocks = panels.flatMap((panel) => writeBlock(range, panel));
  return name ? [{text: name}, ...blocks] : blocks;
}

/** A piece of Markdown that is separated from others by an empty line. */
interface Block {
  text: string;
  isList?: boolean;
}

const block = (text: string): Block[] => (text ? [{text}] : []);

function writeHeading(range: Range, heading: Element): string {
  const text = writeParagraph(range, Array.from(heading.childNodes)).replace(/\n+/g, ' ');
  // A few words of a heading are just words.
  const isPart = heading.contains(range.commonAncestorContainer) && !containsText(range, heading);
  return text && !isPart ? `${'#'.repeat(Number(heading.tagName[1]))} ${text}` : text;
}

function writeBlock(range: Range, element: Element): Block[] {
  if (!range.intersectsNode(element) || isLeftOut(element) || isDefaultTitle(element)) return [];
  if (element.matches('pre, .theme-code-block')) return block(writeCodeBlock(range, element));
  if (element instanceof HTMLTableElement) return block(writeTable(range, element));
  if (element.matches('h1, h2, h3, h4, h5, h6')) return block(writeHeading(range, element));
  if (element.matches('hr')) return containsNode(range, element) ? block('---') : [];
  if (element.matches('.katex-display, p')) return block(writeParagraph(range, [element]));
  if (element.matches('ul[role="tablist"]')) return [];
  if (element.matches('ul, ol')) {
    const text = writeList(range, element);
    return text ? [{text, isList: true}] : [];
  }
  if (element.querySelector(':scope > [role="tablist"]')) return writeTabs(range, element);
  if (element.matches('details:not([open])')) {
    const summary = Array.from(element.children).find((child) => child.matches('summary'));
    return summary ? writeBlock(range, summary) : [];
  }
  const blocks = writeBlocks(range, element);
  if (!element.matches('blockquote') || element.contains(range.commonAncestorContainer)) {
    return blocks;
  }
  return block(joinBlocks(blocks).replace(/^/gm, '> ').replace(/ +$/gm, ''));
}

/** Returns the selected blocks below a node. Text between blocks is a paragraph. */
function writeBlocks(range: Range, parent: Node): Block[] {
  const blocks: Block[] = [];
  let line: Node[] = [];
  const flush = (): void => {
    blocks.push(...block(line.length > 0 ? writeParagraph(range, line) : ''));
    line = [];
  };
  parent.childNodes.forEach((node) => {
    if (isBlock(node)) {
      flush();
      blocks.push(...writeBlock(range, node));
    } else {
      line.push(node);
    }
  });
  flush();
  return blocks;
}

const joinBlocks = (blocks: Block[]): string => blocks.map(({text}) => text).join('\n\n');

/**
 * Returns the part of an article that the range selects, as Markdown.
 *
 * Text that readers do not see or cannot select is left out.
 */
export const writeMarkdown = (range: Range, article: Element): string =>
  joinBlocks(writeBlocks(range, article));
