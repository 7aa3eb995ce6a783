/** Finds images that the build of a site renamed or wrote into the page. */

import {decode, isSamePage} from '../addresses';
import type {Figure} from '../service/protocol';

/** The start of a path below the folder of the site's sources. */
const SITE_FILES = '@site/';

/** Returns true if only the built page knows the address of an image. */
export const isBuilt = (address: string): boolean => address.startsWith(SITE_FILES);

const pages = new Map<string, Promise<Document>>();

/**
 * Returns the address that an image has in the page that shows it; null if the page has no such image.
 *
 * The build of Docusaurus adds a hash to the name of a file. An image that it wrote into the page has
 * no name and is found by its description. Images of other hosts are never returned.
 */
export async function findBuiltImage(
  {address, text}: Pick<Figure, 'address' | 'text'>,
  pageUrl: string,
): Promise<string | null> {
  const url = new URL(pageUrl, window.location.href);
  const isOpen = url.origin === window.location.origin && isSamePage(url.href, window.location.href);
  const page = isOpen ? document : await loadPage(url);
  const [, stem = '', end = ''] = /([^/]*?)(\.[^./]*)?$/.exec(address) ?? [];
  const isNamed = ({src}: Shown): boolean => {
    const name = decode(src.pathname.split('/').pop() ?? '');
    const middle = name.slice(stem.length, name.length - end.length);
    return name.startsWith(stem) && name.endsWith(end) && /^(-[\da-f]{6,})?$/.test(middle);
  };
  const shown = Array.from(page.querySelectorAll('img'), (image): Shown | null => {
    const src = image.getAttribute('src') ?? '';
    return URL.canParse(src, url.href)
      ? {src: new URL(src, url.href), alt: image.getAttribute('alt') ?? ''}
      : null;
  }).filter((image): image is Shown => image !== null);
  const named = shown.filter((image) => image.src.origin === url.origin && isNamed(image));
  const inline = shown.filter(({src, alt}) => text && alt === text && isInline(src));
  return ([...named.filter(({alt}) => alt === text), ...named, ...inline][0]?.src.href) ?? null;
}

interface Shown {
  src: URL;
  alt: string;
}

const isInline = ({protocol, pathname}: URL): boolean =>
  protocol === 'data:' && pathname.startsWith('image/');

/** Reads a page once. Its scripts do not run, and its images are not loaded. */
function loadPage({href}: URL): Promise<Document> {
  const [address = ''] = href.split('#');
  const known = pages.get(address) ?? parsePage(address);
  pages.set(address, known);
  known.catch(() => pages.delete(address));
  return known;
}

async function parsePage(address: string): Promise<Document> {
  const response = await fetch(address);
  return new DOMParser().parseFromString(response.ok ? await response.text() : '', 'text/html');
}
