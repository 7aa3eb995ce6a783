/** The parser of Markdown. It is the one of `remark`, without the parts that an answer never needs. */

import type {Root} from 'mdast';
import {fromMarkdown, type Extension as TreeExtension} from 'mdast-util-from-markdown';
import {gfmFromMarkdown} from 'mdast-util-gfm';
import {gfm} from 'micromark-extension-gfm';
import type {Extension as SyntaxExtension} from 'micromark-util-types';
import {keepWordsOfHtml} from './safeHtml';

/** The syntax of formulas, and how it becomes nodes of the tree. */
export interface FormulaSyntax {
  syntax: SyntaxExtension;
  tree: TreeExtension;
}

// References and footnotes are off, because `[1]` in an answer is always a citation.
const WITHOUT_REFERENCES: SyntaxExtension = {
  disable: {null: ['definition', 'gfmFootnoteCall', 'gfmFootnoteDefinition']},
};

/** Returns the tree of a Markdown text, with the words of raw HTML in place of it. */
export function parseMarkdown(text: string, formulas?: FormulaSyntax): Root {
  const tree = fromMarkdown(text, {
    extensions: [gfm(), WITHOUT_REFERENCES, ...(formulas ? [formulas.syntax] : [])],
    mdastExtensions: [gfmFromMarkdown(), ...(formulas ? [formulas.tree] : [])],
  });
  keepWordsOfHtml(tree);
  return tree;
}
