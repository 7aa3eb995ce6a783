/** Code in Markdown: fenced, or between backticks. */

import {readFence, type Fence} from './fences';

/** Splits a text into code (fenced or between backticks) and everything else. */
export function splitCode(source: string): {code: boolean; part: string}[] {
  const parts: {code: boolean; part: string}[] = [];
  let prose = '';
  let fence: Fence | null = null;
  const flush = (): void => {
    parts.push(...splitInlineCode(prose));
    prose = '';
  };
  for (const line of source.match(/[^\n]*\n|[^\n]+$/g) ?? []) {
    const after = readFence(line.replace(/\n$/, ''), fence);
    if (fence || after) {
      flush();
      parts.push({code: true, part: line});
    } else {
      prose += line;
    }
    fence = after;
  }
  flush();
  return parts;
}

function splitInlineCode(prose: string): {code: boolean; part: string}[] {
  const parts: {code: boolean; part: string}[] = [];
  const runs = [...prose.matchAll(/`+/g)];
  // The next run of each length, found from the end, keeps the search linear.
  const closing = new Map<number, number>();
  const partner: (number | undefined)[] = [];
  for (let index = runs.length - 1; index >= 0; index -= 1) {
    const size = runs[index]![0].length;
    partner[index] = closing.get(size);
    closing.set(size, index);
  }
  let from = 0;
  for (let index = 0; index < runs.length; index += 1) {
    const run = runs[index]!;
    const other = partner[index];
    const close = other === undefined ? undefined : runs[other]!;
    if (!close || prose[run.index - 1] === '\\') {
      continue;
    }
    const end = close.index + close[0].length;
    if (!/\n[ \t]*\n/.test(prose.slice(run.index, end))) {
      parts.push({code: false, part: prose.slice(from, run.index)});
      parts.push({code: true, part: prose.slice(run.index, end)});
      from = end;
      index = other!;
    }
  }
  parts.push({code: false, part: prose.slice(from)});
  return parts;
}

/** Writes links to paths of the site with its origin, except in code. */
export const writeFullLinks = (markdown: string, origin: string): string =>
  splitCode(markdown)
    .map(({code, part}) => (code ? part : part.replace(/\]\((?=\/(?!\/))/g, () => `](${origin}`)))
    .join('');
