/** Elements of a page that a reader goes on reading from. */
const BLOCKS = [
  'blockquote, dd, dt, figcaption, h1, h2, h3, h4, h5, h6, li, p, pre, summary, td, th',
  '.katex-display',
].join(',');

/**
 * Moves the focus to a place of the page.
 *
 * The keyboard and screen readers go on from there. The place can have the focus only until it
 * loses it, so that the page keeps its order of controls.
 */
export function focusPlace(place: Range | Element): void {
  const node = place instanceof Range ? place.startContainer : place;
  const element = node instanceof Element ? node : node.parentElement;
  const block = element?.closest<HTMLElement>(BLOCKS) ?? element;
  if (!(block instanceof HTMLElement)) return;
  if (!block.hasAttribute('tabindex')) {
    block.tabIndex = -1;
    block.addEventListener('blur', () => block.removeAttribute('tabindex'), {once: true});
  }
  block.focus({preventScroll: true});
}
