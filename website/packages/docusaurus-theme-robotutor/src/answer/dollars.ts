/**
 * Formulas among dollar signs.
 *
 * A dollar sign may begin a formula, an amount of money or the name of a variable. Every dollar
 * sign that begins no formula is escaped here, so that the parser of formulas leaves it alone.
 */

import {splitCode} from '../text/code';

/** A text whose dollar signs belong to formulas, except those after a backslash. */
export interface Prepared {
  text: string;
  /** The number of formulas. */
  formulas: number;
}

/** Escapes dollar signs outside formulas, and writes `\(…\)` and `\[…\]` with dollar signs. */
export function prepareFormulas(source: string): Prepared {
  if (!source.includes('$') && !/\\[([]/.test(source)) {
    return {text: source, formulas: 0};
  }
  let formulas = 0;
  const text = splitCode(source)
    .map(({code, part}) => {
      const prepared = code ? {text: part, formulas: 0} : prepareProse(part);
      formulas += prepared.formulas;
      return prepared.text;
    })
    .join('');
  return {text, formulas};
}

/** The most characters of a formula. A bound keeps the search for its end short. */
const MAX_FORMULA = 2000;

const MARK = /\\[\s\S]|\$+/g;

function prepareProse(prose: string): Prepared {
  let text = '';
  let from = 0;
  let formulas = 0;
  MARK.lastIndex = 0;
  for (let mark = MARK.exec(prose); mark; mark = MARK.exec(prose)) {
    const [sign] = mark;
    const found = findFormula(prose, mark.index, sign);
    text += prose.slice(from, mark.index);
    if (found) {
      formulas += 1;
      text += found.written;
      from = found.end;
    } else {
      text += sign.startsWith('$') ? sign.replaceAll('$', '\\$') : sign;
      from = mark.index + sign.length;
    }
    MARK.lastIndex = from;
  }
  return {text: text + prose.slice(from), formulas};
}

interface Formula {
  written: string;
  end: number;
}

function findFormula(prose: string, at: number, sign: string): Formula | null {
  if (sign === '\\(' || sign === '\\[') {
    return findBracketed(prose, at, sign);
  }
  if (!sign.startsWith('$')) {
    return null;
  }
  const from = at + sign.length;
  const end = findRun(prose, from, sign.length);
  if (end < 0) {
    return null;
  }
  const content = prose.slice(from, end);
  const isFormula =
    sign.length > 1
      ? content.trim() !== ''
      : isInlineFormula(prose[at - 1] ?? '', content, prose.slice(end + 1, end + 6));
  return isFormula ? {written: prose.slice(at, end + sign.length), end: end + sign.length} : null;
}

/** Returns the offset of the run of dollar signs that ends a formula, otherwise -1. */
function findRun(prose: string, from: number, size: number): number {
  const length = prose.slice(from, from + MAX_FORMULA).indexOf('$'.repeat(size));
  const end = from + length;
  if (length < 0 || size > 1) {
    return length < 0 ? -1 : end;
  }
  const single = prose[end + 1] !== '$' && prose[end - 1] !== '\\';
  return single && !/\n[ \t]*\n/.test(prose.slice(from, end)) ? end : -1;
}

const AMOUNT = /^\d[\d.,]*\s*(?:[kKmM]|bn)?\s*(?:[-–—/|]|[a-z]{2,}\b(?![^\s]*[\\^_=]))/;
const SUFFIX = /^(?:st|nd|rd|th|s|d|es)(?![\p{L}\p{N}])/u;

/** Returns true if the text between two dollar signs reads as a formula, not as money. */
export function isInlineFormula(before: string, content: string, after: string): boolean {
  if (content === '' || /^\s|\s$/.test(content) || /[\p{L}\p{N}]/u.test(before)) {
    return false;
  }
  if (/^\d/.test(after) || (/^[\p{L}_]/u.test(after) && !SUFFIX.test(after))) {
    return false;
  }
  return !(AMOUNT.test(content) && /\s/.test(content) && !/[\\^_=]/.test(content));
}

function findBracketed(prose: string, at: number, sign: string): Formula | null {
  const close = sign === '\\(' ? '\\)' : '\\]';
  const length = prose.slice(at + 2, at + 2 + MAX_FORMULA).indexOf(close);
  const end = at + 2 + length;
  const content = length < 0 ? '' : prose.slice(at + 2, end).trim();
  if (content === '' || content.includes('$') || /\n[ \t]*\n/.test(content)) {
    return null;
  }
  if (sign === '\\(') {
    return {written: `$${content}$`, end: end + 2};
  }
  const indent = /(?:^|\n)([ \t]*)$/.exec(prose.slice(Math.max(0, at - 40), at));
  const alone = indent !== null && /^[ \t]*(?:\n|$)/.test(prose.slice(end + 2, end + 40));
  const gap = alone ? `\n${indent[1]}` : '';
  return {written: `$$${gap}${content}${gap}$$`, end: end + 2};
}
