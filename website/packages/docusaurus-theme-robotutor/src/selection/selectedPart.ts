/** The part of a node that a range selects. */

import {NOT_TEXT} from '../article';

/** Returns the text of a text node that the range selects. */
export function readSelected(range: Range, node: Text): string {
  if (!range.intersectsNode(node)) return '';
  const start = node === range.startContainer ? range.startOffset : 0;
  const end = node === range.endContainer ? range.endOffset : node.length;
  return node.data.slice(start, end);
}

/** Says if readers do not see an element, cannot select it, or do not read it as text. */
export function isLeftOut(element: Element): boolean {
  // A formula is hidden from one of its two readers, and is read as a whole.
  if (element.matches('.katex, .katex-display')) return false;
  if (element.matches(`${NOT_TEXT},[hidden],[aria-hidden="true"]`)) return true;
  const style = getComputedStyle(element);
  return (
    style.display === 'none' ||
    style.visibility === 'hidden' ||
    (style.userSelect || style.webkitUserSelect) === 'none'
  );
}

const textsOf = (element: Element): Text[] => {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const found: Text[] = [];
  while (walker.nextNode()) found.push(walker.currentNode as Text);
  return found;
};

/** Returns the text nodes of an element that readers can select, in order. */
export function* visibleTexts(node: Node): Generator<Text> {
  if (node instanceof Text) {
    yield node;
  } else if (node instanceof Element && node.matches('.katex')) {
    yield* textsOf(node);
  } else if (!(node instanceof Element) || !isLeftOut(node)) {
    for (const child of Array.from(node.childNodes)) yield* visibleTexts(child);
  }
}

/** Says if the range selects a visible character of an element or an image in it. */
export function touches(range: Range, element: Element): boolean {
  return (
    range.intersectsNode(element) &&
    (textsOf(element).some((text) => readSelected(range, text).trim()) ||
      Array.from(element.querySelectorAll('img')).some((image) => containsNode(range, image)))
  );
}

/** Says if the range selects a node from its beginning to its end. */
export function containsNode(range: Range, node: Node): boolean {
  const own = document.createRange();
  own.selectNode(node);
  return (
    range.compareBoundaryPoints(Range.START_TO_START, own) <= 0 &&
    range.compareBoundaryPoints(Range.END_TO_END, own) >= 0
  );
}

/** Says if the range selects all visible text of an element. */
export function containsText(range: Range, element: Element): boolean {
  for (const text of visibleTexts(element)) {
    if (readSelected(range, text).trim() !== text.data.trim()) return false;
  }
  return true;
}
