/** Addresses as in the theme, but paths lead to the book and not to the page's own host. */

import {readAddress as readOnBook} from '../src/addresses';
import {readSite} from './site';

export * from '../src/addresses';

/** Returns the address that a link may lead to, or null. Addresses on the book are complete. */
export function readAddress(url: string, pageOrigin: string): ReturnType<typeof readOnBook> {
  const {book} = readSite();
  if (new URL(url, 'https://site.invalid').origin === pageOrigin && pageOrigin !== book.origin) {
    return {href: url, internal: false};
  }
  const address = readOnBook(url, book.origin);
  if (!address?.internal) {
    return address;
  }
  const hasBase = `${address.href}/`.startsWith(book.pathname);
  const path = hasBase ? address.href : book.pathname + address.href.slice(1);
  return {href: book.origin + path, internal: true};
}
