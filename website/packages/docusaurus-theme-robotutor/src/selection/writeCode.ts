/** Selected code as Markdown. */

import {isLeftOut, readSelected, touches} from './selectedPart';

interface Code {
  text: string;
  /** The offsets in `text` between which the code is selected. */
  start: number;
  end: number;
}

/** Reads the whole code of an element, and which part of it the range selects. */
function readCode(range: Range, code: Element): Code {
  const read: Code = {text: '', start: -1, end: -1};
  const walk = (node: Node): void => {
    if (node instanceof Text) {
      const selected = readSelected(range, node);
      if (selected) {
        const offset = node === range.startContainer ? range.startOffset : 0;
        if (read.start < 0) read.start = read.text.length + offset;
        read.end = read.text.length + offset + selected.length;
      }
      read.text += node.data;
    } else if (node instanceof Element) {
      const isLine = node.matches('.token-line');
      if (node.matches('br')) {
        if (!node.closest('.token-line')) read.text += '\n';
      } else if (isLine || !isLeftOut(node)) {
        const start = read.text.length;
        node.childNodes.forEach(walk);
        // An empty line contains a line break of its own, other lines do not.
        if (isLine && !read.text.slice(start).endsWith('\n')) read.text += '\n';
      }
    }
  };
  code.childNodes.forEach(walk);
  return read;
}

/** Returns the selection without parts of lines that contain no characters of them. */
function trimLines({text, start, end}: Code): [start: number, end: number] {
  let from = start;
  let until = end;
  while (until > from && text[until - 1] === '\n') until -= 1;
  // The selection began after the last character of a line.
  if (text[from] === '\n' && from > 0 && text[from - 1] !== '\n') from += 1;
  const line = text.lastIndexOf('\n', from - 1) + 1;
  if (!text.slice(line, from).trim()) from = line;
  return [from, until];
}

const longestRun = (text: string, mark: string): number =>
  Math.max(0, ...(text.match(new RegExp(`${mark}+`, 'g')) ?? []).map(({length}) => length));

/** Returns code between enough backticks, in a line of text. */
export function writeCodeSpan(code: string): string {
  const ticks = '`'.repeat(longestRun(code, '`') + 1);
  const gap = code.startsWith('`') || code.endsWith('`') ? ' ' : '';
  return `${ticks}${gap}${code}${gap}${ticks}`;
}

/**
 * Returns the selected part of a block of code, or an empty string.
 *
 * Lines are fenced and keep their indentation. A part of one line becomes a code span.
 *
 * @param block - The element with the code, and perhaps with its title and buttons.
 */
export function writeCodeBlock(range: Range, block: Element): string {
  const title = block.querySelector('[class*="codeBlockTitle"]');
  const name = title && touches(range, title) ? (title.textContent ?? '').trim() : '';
  const pre = block.matches('pre') ? block : block.querySelector('pre');
  if (!pre) return '';
  const code = readCode(range, pre);
  if (code.start < 0 || !code.text.slice(code.start, code.end).trim()) return '';
  const [start, end] = trimLines(code);
  const lines = code.text.slice(start, end);
  const whole = code.text.slice(code.text.lastIndexOf('\n', start - 1) + 1).split('\n')[0] ?? '';
  if (!lines.includes('\n') && lines.trim() !== whole.trim()) return writeCodeSpan(lines.trim());
  const named = [pre.querySelector('code'), pre.closest('[class*="language-"]')];
  const classes = named.map((element) => element?.className ?? '').join(' ');
  const language = /(?:^|\s)language-(\S+)/.exec(classes)?.[1] ?? '';
  const fence = '`'.repeat(Math.max(3, longestRun(lines, '`') + 1));
  const info = name ? `${language} title="${name}"`.trim() : language;
  return `${fence}${info}\n${lines}\n${fence}`;
}
