import {trimPath} from '../addresses';
import type {CopyResult} from '../clipboard/CopyButton';
import {copyText} from '../clipboard/copyText';
import {writeFullLinks} from '../text/code';

/**
 * Returns the address of a page's Markdown file.
 *
 * It is the address of the page with `.md`, and `index.md` for the page at the root of the site.
 *
 * @param pathname Path of the page, with or without a slash at the end.
 * @param baseUrl Path of the site; ends with a slash.
 */
export function markdownAddress(pathname: string, baseUrl: string): string {
  const path = trimPath(pathname);
  const isRoot = path === trimPath(baseUrl);
  return isRoot ? `${baseUrl}index.md` : `${path}.md`;
}

/**
 * Reads the Markdown file of a page.
 *
 * @returns The text; null if the site has no such file. A site may answer with a page instead of
 *   status 404, so an HTML answer counts as missing.
 */
export async function fetchMarkdown(address: string): Promise<string | null> {
  try {
    const response = await fetch(address, {headers: {accept: 'text/markdown, text/plain'}});
    const type = response.headers.get('content-type') ?? '';
    return response.ok && !type.startsWith('text/html') ? await response.text() : null;
  } catch {
    return null;
  }
}

/** Returns the Markdown of a page with its address below the title. */
export function nameAddress(markdown: string, url: string): string {
  const title = /^# [^\n]*\n/.exec(markdown)?.[0] ?? '';
  const rest = markdown.slice(title.length).replace(/^\n+/, '');
  return `${title && `${title}\n`}<${url}>\n\n${rest}`;
}

/** Copies the Markdown of a page, with its address and full links, to the clipboard. */
export async function copyMarkdown(address: string, pathname: string): Promise<CopyResult> {
  const text = fetchMarkdown(address).then((found) => {
    if (found === null) throw new Error('The site has no such file.');
    const {origin} = window.location;
    return nameAddress(writeFullLinks(found, origin), origin + pathname);
  });
  try {
    return (await copyText(text)) ? 'copied' : 'refused';
  } catch {
    return 'missing';
  }
}
