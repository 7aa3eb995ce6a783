/** Ways into the book without the service. */

const SEARCH_FIELDS = [
  '.navbar input[type="search"]',
  '.navbar__search-input',
  '.navbar [role="search"] input',
  '[class*="searchBox"] input',
  '.DocSearch-Button',
  '[class*="searchBox"] button',
].join(', ');

/** Returns the visible search field of the site, or the button that opens it; null without one. */
export function findSearch(): HTMLElement | null {
  const fields = [...document.querySelectorAll<HTMLElement>(SEARCH_FIELDS)];
  return fields.find((field) => field.getClientRects().length > 0) ?? null;
}

/** Takes the reader to the site's search, with a question in its field if it has one. */
export function openSearch(question = ''): void {
  const field = findSearch();
  field?.focus();
  if (field instanceof HTMLInputElement && question) {
    // React notices only what the prototype's own setter writes.
    const {set} = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value') ?? {};
    set?.call(field, question);
    field.dispatchEvent(new Event('input', {bubbles: true}));
  }
  if (field instanceof HTMLButtonElement) {
    field.click();
  }
}

interface DocsVersion {
  isLast?: boolean;
  path?: string;
  mainDocId?: string;
  docs?: {id: string; path: string}[];
}

/** Returns the path of the book's first page, by the data of the docs plugin; null without one. */
export function findFirstPage(docsData: unknown): string | null {
  const {versions} = (docsData ?? {}) as {versions?: DocsVersion[]};
  const version = versions?.find(({isLast}) => isLast) ?? versions?.[0];
  const main = version?.docs?.find(({id}) => id === version.mainDocId) ?? version?.docs?.[0];
  return main?.path ?? version?.path ?? null;
}
