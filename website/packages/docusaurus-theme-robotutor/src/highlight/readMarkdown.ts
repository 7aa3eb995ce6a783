/** The letters of Markdown that readers see on the page. */

import {readFence, type Fence} from '../text/fences';
import {toLetters} from './letters';

// The order matters: code and formulas are kept as they are, before anything is taken for a mark.
const MARKS = new RegExp(
  [
    String.raw`\\[^\w\s]`, // an escaped mark
    '(?<ticks>`+)(?!`)(?<code>[\\s\\S]*?[^`])\\k<ticks>(?!`)',
    String.raw`\$\$(?<display>[\s\S]+?)\$\$`,
    String.raw`\$(?<inline>[^$]+?)\$`,
    String.raw`<!--[\s\S]*?-->|\{\/\*[\s\S]*?\*\/\}`,
    String.raw`<(?<address>(?:https?:|mailto:)[^<>\s]+|[^<>\s@]+@[^<>\s]+)>`,
    String.raw`<\/?[a-zA-Z][\w.-]*(?:\s[^<>]*)?\/?>`,
    String.raw`\[\^[^\]\s]+\]`, // a reference to a footnote
    String.raw`^[ \t]*\[[^\]\n]+\]:[ \t]+\S.*$`, // the definition of a link
    String.raw`\]\((?:[^()\s]|\([^()\s]*\))*(?:\s+(?:"[^"]*"|'[^']*'))?\)`,
    String.raw`\]\[[^\]]*\]`,
    String.raw`\{#[\w-]+\}`, // the id of a heading
    String.raw`^[ \t>]*:{3,}[ \t]*[\w-]*`, // the name of an admonition
    String.raw`^[ \t>]*(?:[-*+][ \t]+)*(?:\d+[.)][ \t]+|[-*+][ \t]+\[[ xX]\][ \t])`, // an item
    String.raw`(?<entity>&(?:#\d+|#[xX][\da-fA-F]+|[a-zA-Z]\w*);)`,
  ].join('|'),
  'gm',
);

/** Returns the character that an entity, such as `&lt;`, stands for. */
const decodeEntity = (entity: string): string =>
  new DOMParser().parseFromString(entity, 'text/html').documentElement.textContent ?? '';

function readProse(markdown: string): string {
  return markdown.replace(MARKS, (...match: unknown[]) => {
    const found = match.at(-1) as Record<string, string | undefined>;
    if (found.entity) return decodeEntity(found.entity);
    return found.code ?? found.display ?? found.inline ?? found.address ?? ' ';
  });
}

/**
 * Returns the letters of each line of Markdown as the page shows them, without empty lines.
 *
 * Formulas are TeX. Addresses of links are left out, and so are sources of diagrams, because the
 * page shows a drawing.
 */
export function readMarkdown(markdown: string): string[] {
  const seen: string[] = [];
  let lines: string[] = [];
  let fence: Fence | null = null;
  const flush = (): void => {
    const text = lines.join('\n');
    if (fence?.language !== 'mermaid') seen.push(...(fence ? text : readProse(text)).split('\n'));
    lines = [];
  };
  for (const line of markdown.split(/\r?\n/)) {
    const after = readFence(line, fence);
    if (after === fence) {
      lines.push(line);
    } else {
      flush();
      fence = after;
    }
  }
  flush();
  return seen.map(toLetters).filter(Boolean);
}
