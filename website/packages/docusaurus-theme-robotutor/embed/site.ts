/** The book and the service that the script tag names. */

import type {CheckedOptions} from '../src/options';

interface Site {
  settings: Omit<CheckedOptions, 'id' | 'enabled'>;
  /** The address of the book's first page; ends with a slash. */
  book: URL;
  /** The language of the panel, such as `de`. */
  language: string;
}

let site: Site | null = null;

/** Returns the site. It is known before the panel is drawn. */
export function readSite(): Site {
  if (!site) {
    throw new Error('The site is not set.');
  }
  return site;
}

/** Sets the site by the data attributes of the script tag. Throws an error that says what to add. */
export function setSite({service, baseUrl, language}: DOMStringMap): void {
  if (!service) {
    throw new Error(
      'The script tag has no data-service. Add the address of the service to it, such as ' +
        'data-service="https://tutor.example.org".',
    );
  }
  const serviceUrl = readUrl('data-service', service).href.replace(/\/+$/, '');
  const book = readUrl('data-base-url', baseUrl || `${new URL(serviceUrl).origin}/`);
  book.pathname = book.pathname.replace(/\/*$/, '/');
  site = {
    settings: {serviceUrl, name: 'RoboTutor', copyPage: false, manifest: false, shortcut: 'mod+i'},
    book,
    language: language || document.documentElement.lang || 'en',
  };
}

function readUrl(attribute: string, value: string): URL {
  const url = URL.canParse(value, window.location.href)
    ? new URL(value, window.location.href)
    : null;
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new Error(
      `${attribute}="${value}" is not an address. Use one such as https://book.example.org.`,
    );
  }
  url.search = '';
  url.hash = '';
  return url;
}

/** Returns true if the page has the host of the book. */
export const isOnBook = (): boolean => readSite().book.origin === window.location.origin;
