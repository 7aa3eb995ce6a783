/** The beginning of a Markdown text, which stays Markdown. */

import {splitBlocks} from './blocks';
import {prepareFormulas} from './dollars';
import {readPlainText, shorten} from './plainText';

const NO_PROSE = /^\s*(?:\||```|~~~|\$\$|<|[-*+] |\d+[.)] )/;

/**
 * Returns the first words of a Markdown text, about `limit` characters, with their formulas.
 *
 * Formulas, code and links are never cut. Code, tables and lists are told in words, because their
 * first lines alone say little.
 */
export function excerptOf(markdown: string, limit: number): string {
  const text = markdown.trim();
  const first = splitBlocks(text)[0]?.text.trim() ?? '';
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
