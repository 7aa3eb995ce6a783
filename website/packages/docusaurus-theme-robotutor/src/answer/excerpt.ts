/** The beginning of a Markdown text, which stays Markdown. */

import {splitBlocks} from './blocks';
import {prepareFormulas} from './dollars';
import {readPlainText, shorten} from './plainText';

const NO_PROSE = /^\s*(?:\||```|~~~|\$\$|<|[-*+] |\d+[.)] )/;

/**
 * Returns the first words of a Markdown text, about `limit` characters, with their formulas.
 *
 * Formulas, inline code and links are never cut. Tables and lists are told in words, and of a block
 * of code there are the first two lines.
 */
export function excerptOf(markdown: string, limit: number): string {
  const text = markdown.trim();
  const first = splitBlocks(text)[0]?.text.trim() ?? '';
  const code = /^\s*(?:```|~~~)/.test(first) ? excerptOfCode(first, limit) : null;
  if (code) {
    return code;
  }
  if (/^\s*\|/.test(first)) {
    return escapeMarkdown(shorten(readPlainText(tellTable(first)), limit));
  }
  if (NO_PROSE.test(first)) {
    return escapeMarkdown(shorten(readPlainText(text), limit));
  }
  if (first.length <= limit * 1.25) {
    return first === text ? text : `${first} …`;
  }
  for (let end = limit; end > limit / 2; end -= 1) {
    if (/\s/.test(first[end] ?? '') && isWhole(first.slice(0, end))) {
      return `${first.slice(0, end).trimEnd()} …`;
    }
  }
  return escapeMarkdown(shorten(readPlainText(first), limit));
}

/** Returns the first two lines of a code block as inline code, or null if that is not possible. */
function excerptOfCode(block: string, limit: number): string | null {
  const lines = block
    .split('\n')
    .slice(1)
    .map((line) => line.trim())
    .filter((line) => line && !/^(?:```|~~~)/.test(line));
  const shown = lines.slice(0, 2).map((line) => `\`${line.slice(0, limit)}\``);
  const isPossible = lines.length > 0 && !lines.slice(0, 2).some((line) => line.includes('`'));
  return isPossible ? `${shown.join(' ')}${lines.length > 2 ? ' …' : ''}` : null;
}

/** Returns the rows of a table as words: cells between dots, rows between semicolons. */
const tellTable = (block: string): string =>
  block
    .split('\n')
    .filter((line) => /[^-:|\s]/.test(line))
    .map((line) =>
      line
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim())
        .filter(Boolean)
        .join(' · '),
    )
    .join('; ');

/** Returns true if a text ends outside of formulas, code, links and emphasis. */
function isWhole(text: string): boolean {
  const count = (sign: RegExp): number => text.match(sign)?.length ?? 0;
  const open = text.lastIndexOf('[');
  const isLink = open >= 0 && !/\]\([^()\s]*\)|\](?!\()/.test(text.slice(open));
  const isFormula = prepareFormulas(text).text.includes('\\$') && !text.includes('\\$');
  return !isLink && !isFormula && count(/`/g) % 2 === 0 && count(/\*\*/g) % 2 === 0;
}

/** Returns words whose signs are shown and not read as Markdown. */
const escapeMarkdown = (words: string): string => words.replace(/[\\`*_[\]<>#|~$]/g, '\\$&');
