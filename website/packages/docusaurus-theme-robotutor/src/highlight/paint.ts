/** The highlight of the passage that a reader went to. */

import './highlight.css';

const NAME = 'robotutor';

/** The registry as a map, which the types of the browser's interfaces do not say. */
type Registry = Pick<Map<string, Highlight>, 'set' | 'delete'>;

const getRegistry = (): Registry | null =>
  typeof CSS !== 'undefined' && 'highlights' in CSS && typeof Highlight !== 'undefined'
    ? (CSS.highlights as unknown as Registry)
    : null;

// Parts of a formula overlap, so a color behind each of them would hide others.
const FORMULA_MARK = 'data-robotutor-mark';

function markFormulas(ranges: readonly Range[]): void {
  for (const range of ranges) {
    const {commonAncestorContainer: common} = range;
    const around = common instanceof Element ? common : common.parentElement;
    around?.querySelectorAll('.katex').forEach((formula) => {
      if (range.intersectsNode(formula)) formula.setAttribute(FORMULA_MARK, '');
    });
  }
}

function unmarkFormulas(): void {
  const marked = document.querySelectorAll(`[${FORMULA_MARK}]`);
  marked.forEach((formula) => formula.removeAttribute(FORMULA_MARK));
}

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
  unmarkFormulas();
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
  markFormulas(ranges);
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
    unmarkFormulas();
    markFormulas(shown);
  });
  observer.observe(root, {childList: true, subtree: true});
  const timer = setTimeout(() => observer.disconnect(), 3000);
  stopKeeping = () => {
    clearTimeout(timer);
    observer.disconnect();
  };
}
