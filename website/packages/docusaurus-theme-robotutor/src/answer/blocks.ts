/** Blocks of Markdown, which can be parsed one by one while text arrives. */

import {readFence, type Fence} from '../text/fences';

const LIST_ITEM = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)/;

/** A part of a text that Markdown renders alike alone. `start` is its offset in the text. */
export interface Block {
  text: string;
  start: number;
}

/**
 * Splits Markdown at blank lines, so that finished blocks are parsed once while text arrives.
 *
 * Code fences, `$$` formulas and lists stay whole.
 */
export function splitBlocks(text: string): Block[] {
  const blocks: Block[] = [];
  let start = 0;
  let at = 0;
  let fence: Fence | null = null;
  let formula = false;
  let blank = false;
  let list = false;
  for (const line of text.split('\n')) {
    const outside = fence === null && !formula;
    if (outside && line.trim() === '') {
      blank = true;
    } else {
      if (outside && blank && at > start && !(list && continuesList(line))) {
        blocks.push({text: text.slice(start, at), start});
        start = at;
        list = false;
      }
      list ||= outside && LIST_ITEM.test(line);
      blank = false;
      if (!formula) {
        fence = readFence(line, fence);
      }
      if (fence === null && /^[ \t>]*\$\$/.test(line)) {
        // A line with both ends of a formula leaves nothing open.
        formula = formula ? false : !/\$\$.*\$\$/.test(line);
      } else if (formula && /\$\$[ \t]*$/.test(line)) {
        formula = false;
      }
    }
    at += line.length + 1;
  }
  if (start < text.length) {
    blocks.push({text: text.slice(start), start});
  }
  return blocks;
}

/**
 * Joins neighboring blocks until each has about `size` characters.
 *
 * Each block has a parser of its own, so many small blocks cost more than a few larger ones. A
 * block that is followed by another one stays the same when text is added at the end.
 */
export function joinBlocks(blocks: Block[], size: number): Block[] {
  const joined: Block[] = [];
  for (const block of blocks) {
    const last = joined[joined.length - 1];
    if (last && last.text.length + block.text.length <= size) {
      joined[joined.length - 1] = {...last, text: last.text + block.text};
    } else {
      joined.push(block);
    }
  }
  return joined;
}

function continuesList(line: string): boolean {
  return /^[ \t]/.test(line) || LIST_ITEM.test(line);
}
