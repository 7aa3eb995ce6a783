import type {Processor} from 'unified';
import {gfmFromMarkdown} from 'mdast-util-gfm';
import {gfm} from 'micromark-extension-gfm';

/**
 * Reads tables, task lists, bare addresses and struck text, and no references.
 *
 * This is the reading half of `remark-gfm`. The other half writes Markdown, and its size counts.
 * References and footnotes are off, because `[1]` in an answer is always a citation.
 */
export function readTables(this: Processor): void {
  const data = this.data() as {
    micromarkExtensions?: unknown[];
    fromMarkdownExtensions?: unknown[];
  };
  (data.micromarkExtensions ??= []).push(gfm(), {
    disable: {null: ['definition', 'gfmFootnoteCall', 'gfmFootnoteDefinition']},
  });
  (data.fromMarkdownExtensions ??= []).push(gfmFromMarkdown());
}
