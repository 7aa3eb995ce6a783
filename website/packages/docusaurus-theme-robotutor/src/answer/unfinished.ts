/** The end of a text that is still arriving, shown without signs that the next words explain. */

import {splitCode} from '../text/code';
import {readFence, type Fence} from '../text/fences';

/**
 * Returns the last block of a streamed text so that it does not change its look with every word.
 *
 * Unfinished formulas, links, citations and table heads are held back. Unfinished bold text and
 * inline code are closed. Fences need nothing, because Markdown closes them at the end.
 */
export function calmEnd(block: string): string {
  let fence: Fence | null = null;
  for (const line of block.split('\n')) {
    fence = readFence(line, fence);
  }
  if (fence) {
    const isOpening = !block.trimStart().includes('\n');
    return isOpening ? '' : block.replace(/\n[ \t>]*(?:`+|~+|[`~]{3,}[^\n`]*)$/, '\n');
  }
  const whole = block.replace(/(^|\n)[ \t>]*(?:`{1,2}|~{1,2})$/, '$1');
  const at = whole.lastIndexOf('\n\n') + 1;
  return whole.slice(0, at) + calmParagraph(holdTableHead(whole.slice(at)));
}

/** Leaves out the rows of a table until the line below its head is complete. */
function holdTableHead(text: string): string {
  const lines = text.split('\n');
  const first = lines.findIndex((line) => /^\s*\|/.test(line));
  if (first < 0) {
    return text;
  }
  const ruled = first + 2 < lines.length && /^\s*\|?\s*:?-/.test(lines[first + 1] ?? '');
  const mayBeTable = ruled || lines.length - first <= 2;
  return mayBeTable && !ruled ? lines.slice(0, first).join('\n') : text;
}

function calmParagraph(text: string): string {
  const parts = splitCode(text);
  const prose = parts[parts.length - 1]?.part ?? '';
  const before = text.slice(0, text.length - prose.length);
  const tick = /(^|[^`\\])`(?!`)/.exec(prose);
  if (tick) {
    const rest = prose.slice(tick.index + tick[0].length);
    return rest.trim() === ''
      ? before + prose.slice(0, tick.index) + (tick[1] ?? '')
      : `${text}\``;
  }
  return closeBold(before, holdLink(holdFormula(prose)));
}

/** Cuts a text before a formula that has no end yet. */
function holdFormula(prose: string): string {
  const fences = prose.split('$$');
  if (fences.length % 2 === 0) {
    return prose.slice(0, prose.lastIndexOf('$$'));
  }
  const display = prose.lastIndexOf('\\[');
  if (display >= 0 && !prose.includes('\\]', display)) {
    return prose.slice(0, display);
  }
  const inline = prose.lastIndexOf('\\(');
  if (inline >= 0 && !prose.includes('\\)', inline)) {
    return prose.slice(0, inline);
  }
  // An amount of money starts with a digit and is shown at once.
  const dollars = [...prose.matchAll(/\$+/g)].filter(({index}) => prose[index - 1] !== '\\');
  const last = dollars[dollars.length - 1];
  const odd = dollars.filter(({0: run}) => run.length === 1).length % 2 === 1;
  if (last && odd && !/^\$\d/.test(prose.slice(last.index)) && prose.length - last.index < 200) {
    return /^\$\s/.test(prose.slice(last.index)) ? prose : prose.slice(0, last.index);
  }
  return prose;
}

function holdLink(prose: string): string {
  return prose.replace(/!?\[[^[\]\n]{0,200}(?:\]\([^()\n]{0,500})?$/, '');
}

function closeBold(before: string, prose: string): string {
  const marks = (before + prose).match(/\*\*/g)?.length ?? 0;
  if (marks % 2 === 0) {
    return before + prose.replace(/(^|\s)\*$/, '$1');
  }
  const trimmed = prose.trimEnd();
  const closed = trimmed.endsWith('**') ? trimmed.slice(0, -2) : `${trimmed.replace(/\*$/, '')}**`;
  return before + closed;
}
