/** Addresses of pages: which are safe, and which lead to the same page. */

/** An address of a link: within the site, or somewhere else. */
interface Address {
  href: string;
  internal: boolean;
}

const BASE = 'https://site.invalid';

/**
 * Returns the address that a link may lead to, or null if the link is dropped.
 *
 * Only `http:`, `https:` and `mailto:` are kept, and paths from the root of the site. A relative
 * path is dropped, because it is relative to a page that the reader may not be on.
 *
 * @param origin - The origin of the site, such as `https://example.org`.
 */
export function readAddress(url: string, origin: string): Address | null {
  let parsed: URL;
  try {
    parsed = new URL(url, BASE);
  } catch {
    return null;
  }
  const isWeb = /^https?:$/.test(parsed.protocol);
  if (isWeb && (parsed.origin === BASE || parsed.origin === origin)) {
    const fromRoot = url.startsWith('/') || parsed.origin !== BASE;
    // A second slash after the first one would name another host once the address is used.
    const path = `${parsed.pathname}${parsed.search}${parsed.hash}`;
    return fromRoot && !path.startsWith('//') ? {href: path, internal: true} : null;
  }
  if (parsed.protocol === 'mailto:') {
    return {href: parsed.href, internal: false};
  }
  return isWeb && /^https?:\/\//i.test(url) ? {href: parsed.href, internal: false} : null;
}

/** Returns a path without what servers and routers treat as equal, such as a slash at the end. */
export const trimPath = (pathname: string): string =>
  pathname.replace(/\/+$/, '').replace(/(?:\/index)?\.html$/, '') || '/';

/** Returns true if two addresses lead to the same page. Hosts, queries and anchors do not count. */
export const isSamePage = (one: string, other: string): boolean => readPath(one) === readPath(other);

/** Returns the decoded path of an address in the form that equal pages share. */
export function readPath(url: string): string {
  try {
    return decode(trimPath(new URL(url, BASE).pathname));
  } catch {
    return url; // not a valid address, which is only equal to itself
  }
}

/** Returns a text without percent signs; the text itself if it is not valid. */
export function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
