/** Selected text within a paragraph as Markdown. */

import {containsNode, isLeftOut, readSelected, touches, visibleTexts} from './selectedPart';
import {writeCodeSpan} from './writeCode';

const EMPHASIS: Readonly<Record<string, string>> = {
  B: '**',
  DEL: '~~',
  EM: '*',
  I: '*',
  S: '~~',
  STRONG: '**',
};

/** Returns text in which no character is taken for a mark of Markdown. */
const escapeMarks = (text: string): string =>
  text
    .replace(/[\u200b\u2060\ufeff]/g, '')
    .replace(/\s+/g, ' ')
    .replace(/[\\`*$]|<(?=[a-zA-Z/!])|\b_|_\b|\](?=\()/g, (mark, at: number, all: string) => {
      const isInWord = mark === '_' && /\w/.test(all[at - 1] ?? '') && /\w/.test(all[at + 1] ?? '');
      const isPlainSlash = mark === '\\' && !/[!-/:-@[-`{-~]/.test(all[at + 1] ?? '');
      return isInWord || isPlainSlash ? mark : `\\${mark}`;
    });

/** Returns a text between two marks, which may not be next to white space. */
function wrap(text: string, mark: string): string {
  const [, before = '', inner = '', after = ''] = /^(\s*)([\s\S]*?)(\s*)$/.exec(text) ?? [];
  return inner ? `${before}${mark}${inner}${mark}${after}` : text;
}

/** Returns the TeX of a formula of KaTeX, or an empty string. */
const readTeX = (formula: Element): string =>
  formula.querySelector('annotation[encoding="application/x-tex"]')?.textContent?.trim() ?? '';

function writeElement(range: Range, element: Element): string {
  if (element.matches('.katex, .katex-display')) {
    // A formula of which a part is selected is returned as a whole.
    const tex = touches(range, element) ? readTeX(element) : '';
    if (!tex) return '';
    return element.matches('.katex-display') ? `\n\n$$\n${tex}\n$$\n\n` : `$${tex}$`;
  }
  if (element.matches('br')) return '\n';
  if (element instanceof HTMLImageElement) return containsNode(range, element) ? element.alt : '';
  if (element instanceof HTMLInputElement) return element.checked ? '[x] ' : '[ ] ';
  if (element.matches('code')) {
    const code = Array.from(visibleTexts(element), (text) => readSelected(range, text)).join('');
    return code.trim() ? writeCodeSpan(code) : '';
  }
  const text = writeInline(range, Array.from(element.childNodes));
  if (element.matches('sup') && text.trim()) return `^${text}`;
  const mark = EMPHASIS[element.tagName];
  // Words within emphasized text are not emphasized among themselves.
  return mark && !element.contains(range.commonAncestorContainer) ? wrap(text, mark) : text;
}

/** Returns the selected part of nodes that stand in a line. */
export function writeInline(range: Range, nodes: readonly Node[]): string {
  return nodes
    .map((node) => {
      if (!range.intersectsNode(node)) return '';
      if (node instanceof Text) return escapeMarks(readSelected(range, node));
      return node instanceof Element && !isLeftOut(node) ? writeElement(range, node) : '';
    })
    .join('');
}

/** Returns a paragraph without needless white space, or an empty string. */
export const writeParagraph = (range: Range, nodes: readonly Node[]): string =>
  writeInline(range, nodes)
    .replace(/ *\n */g, '\n')
    .replace(/\n{3,}/g, '\n\n')
    .replace(/ {2,}/g, ' ')
    .trim()
    // The first characters of a paragraph are not meant as the mark of a heading or a list.
    .replace(/^(?:#{1,6}(?=\s)|[-+>](?=\s))/, '\\$&')
    .replace(/^(\d+)([.)])(?=\s)/, '$1\\$2');
