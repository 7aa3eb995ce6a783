/** The words of Markdown without its signs, for previews. */

import {isInlineFormula} from './dollars';

/** Removes the heading with which the text of a section begins. */
export function dropHeading(markdown: string): string {
  return markdown.replace(/^\s*#{1,6}[ \t][^\n]*(?:\n|$)/, '').trim();
}

/** Returns the words of a Markdown text in one line. Long formulas become an ellipsis. */
export function readPlainText(markdown: string): string {
  return markdown
    .replace(/\$\$[\s\S]*?(?:\$\$|$)/g, ' … ')
    .replace(/\$([^$\n]{1,200})\$/g, (written, tex: string, at: number, whole: string) => {
      const end = at + written.length;
      const isFormula = isInlineFormula(whole[at - 1] ?? '', tex, whole.slice(end, end + 5));
      // Without its dollar signs, a name such as z_c reads well. A formula with commands does not.
      return !isFormula ? written : /[\\{}]/.test(tex) ? '…' : tex;
    })
    .replace(/<!--[\s\S]*?-->/g, ' ')
    .replace(/^[ \t]*(?:`{3,}|~{3,}).*$/gm, ' ')
    .replace(/^[ \t>]*#{1,6}[ \t]+/gm, '')
    .replace(/^[ \t]*(?:>[ \t]?)+/gm, '')
    .replace(/^[ \t]*(?:\|[-:| \t]*-[-:| \t]*|-{3,}[ \t]*)$/gm, ' ')
    .replace(/!?\[([^[\]]*)\]\([^()\s]*(?:[ \t]+"[^"]*")?\)/g, '$1')
    .replace(/(\*\*|__)(?=\S)([^*_\n]+)\1/g, '$2')
    .replace(/(^|[\s(])([*_])(?=\S)([^*_\n]+)\2/g, '$1$3')
    .replace(/`+([^`]+)`+/g, '$1')
    .replace(/\\([!-/:-@[-`{-~])/g, '$1')
    .replace(/[ \t]*\|[ \t]*/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
}

/** Returns the first words of a text, at most `limit` characters, cut between words. */
export function shorten(text: string, limit: number): string {
  if (text.length <= limit) {
    return text;
  }
  const cut = text.slice(0, limit);
  const space = cut.lastIndexOf(' ');
  return `${(space > limit / 2 ? cut.slice(0, space) : cut).trimEnd()} …`;
}
