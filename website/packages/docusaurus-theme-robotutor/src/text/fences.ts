/** Code fences of Markdown, read line by line. */

/** An open code fence: its character, the least length of the closing fence, and its language. */
export interface Fence {
  char: string;
  size: number;
  language: string;
}

const FENCE = /^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})(.*)$/;

/** Returns the fence that is open after a line, given the fence that was open before it. */
export function readFence(line: string, open: Fence | null): Fence | null {
  const match = FENCE.exec(line);
  if (!match) {
    return open;
  }
  const [, run = '', rest = ''] = match;
  if (!open) {
    // A backtick after the opening run makes it inline code.
    const isInline = run[0] === '`' && rest.includes('`');
    return isInline ? null : {char: run[0]!, size: run.length, language: rest.trim().split(/\s/)[0]!};
  }
  const closes = run[0] === open.char && run.length >= open.size && rest.trim() === '';
  return closes ? null : open;
}
