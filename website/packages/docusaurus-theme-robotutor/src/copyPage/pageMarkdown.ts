/** The result of copying a page: `missing` means that the site has no Markdown file of it. */
export type CopyResult = 'copied' | 'refused' | 'missing';

/**
 * Returns the address of a page's Markdown file.
 *
 * It is the address of the page with `.md`, and `index.md` for the page at the root of the site.
 *
 * @param pathname Path of the page, with or without a slash at the end.
 * @param baseUrl Path of the site; ends with a slash.
 */
export function markdownAddress(pathname: string, baseUrl: string): string {
  const path = pathname.replace(/\/+$/, '').replace(/\.html$/, '');
  const isRoot = path === baseUrl.replace(/\/+$/, '');
  return isRoot ? `${baseUrl}index.md` : `${path}.md`;
}

/**
 * Reads the Markdown file of a page.
 *
 * @returns The text; null if the site has no such file. A site may answer with a page instead of
 *   status 404, so an HTML answer counts as missing.
 */
export async function readMarkdown(address: string): Promise<string | null> {
  try {
    const response = await fetch(address, {headers: {accept: 'text/markdown, text/plain'}});
    const type = response.headers.get('content-type') ?? '';
    return response.ok && !type.startsWith('text/html') ? await response.text() : null;
  } catch {
    return null;
  }
}

/**
 * Makes the links of a Markdown text absolute, so that they work where the text is pasted.
 *
 * Code blocks stay as they are.
 *
 * @param origin Scheme and host of the site, without a slash at the end.
 */
export function withOrigin(markdown: string, origin: string): string {
  let fence = '';
  return markdown
    .split('\n')
    .map((line) => {
      const mark = /^[\s>]*(?:(?:[-*+]|\d+[.)])\s+)*(`{3,}|~{3,})/.exec(line)?.[1];
      if (fence) {
        if (mark?.startsWith(fence) && /^[\s>]*[`~]+\s*$/.test(line)) fence = '';
        return line;
      }
      if (mark) {
        fence = mark;
        return line;
      }
      // A code span is matched first, so that its text is left alone.
      return line.replace(/(`+)[^`]+\1|\]\(\/(?!\/)/g, (found) =>
        found === '](/' ? `](${origin}/` : found,
      );
    })
    .join('\n');
}

/** Copies the Markdown text of a page to the clipboard, and returns what became of it. */
export async function copyMarkdown(address: string): Promise<CopyResult> {
  let isMissing = false;
  const read = async (): Promise<string> => {
    const text = await readMarkdown(address);
    if (text === null) {
      isMissing = true;
      throw new Error('missing');
    }
    return withOrigin(text, window.location.origin);
  };
  try {
    await writeClipboard(read);
    return 'copied';
  } catch {
    return isMissing ? 'missing' : 'refused';
  }
}

/** Writes a text that is still being read to the clipboard. Rejects if the browser refuses. */
async function writeClipboard(read: () => Promise<string>): Promise<void> {
  if (typeof ClipboardItem === 'undefined') {
    await navigator.clipboard.writeText(await read());
    return;
  }
  // Safari allows writing only during the click, so it gets the text as a promise.
  const blob = read().then((text) => new Blob([text], {type: 'text/plain'}));
  blob.catch(() => undefined);
  await navigator.clipboard.write([new ClipboardItem({'text/plain': blob})]);
  await blob;
}
