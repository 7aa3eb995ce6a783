/** The highlight of the passage that a reader went to. */

import './highlight.module.css';

const NAME = 'robotutor';

/** The registry as a map, which the types of the browser's interfaces do not say. */
type Registry = Pick<Map<string, Highlight>, 'set' | 'delete'>;

const getRegistry = (): Registry | null =>
  typeof CSS !== 'undefined' && 'highlights' in CSS && typeof Highlight !== 'undefined'
    ? (CSS.highlights as unknown as Registry)
    : null;

const removeOnEscape = (event: KeyboardEvent): void => {
  if (event.key === 'Escape') removeHighlight();
};

/** Stops to keep the highlight while the page renders again. */
let stopKeeping = (): void => {};

/** Removes the highlight, if there is one. */
export function removeHighlight(): void {
  stopKeeping();
  document.removeEventListener('keydown', removeOnEscape, true);
  getRegistry()?.delete(NAME);
}

/**
 * Highlights ranges until the next highlight or until the reader presses Escape.
 *
 * @returns False if the browser cannot highlight ranges.
 */
export function highlightRanges(ranges: readonly Range[]): boolean {
  removeHighlight();
  const registry = getRegistry();
  if (!registry) return false;
  registry.set(NAME, new Highlight(...ranges));
  document.addEventListener('keydown', removeOnEscape, true);
  return true;
}

/**
 * Highlights again what `find` returns if the page replaces the highlighted text.
 *
 * Docusaurus renders tabs a second time shortly after a page is loaded.
 */
export function keepHighlight(root: Element, ranges: readonly Range[], find: () => Range[] | null): void {
  let shown = ranges;
  const observer = new MutationObserver(() => {
    if (!shown.some((range) => range.collapsed)) return;
    shown = find() ?? [];
    getRegistry()?.set(NAME, new Highlight(...shown));
  });
  observer.observe(root, {childList: true, subtree: true});
  const timer = setTimeout(() => observer.disconnect(), 3000);
  stopKeeping = () => {
    clearTimeout(timer);
    observer.disconnect();
  };
}
