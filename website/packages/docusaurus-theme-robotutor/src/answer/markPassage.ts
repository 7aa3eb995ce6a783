/** The marked sentences of a quoted passage. */

import type {Element, ElementContent, Root, RootContent} from 'hast';

/** Returns a plugin that puts `mark` elements around parts of a text, given by their offsets. */
export function markPassage(ranges: [number, number][]) {
  return () =>
    (tree: Root): void => {
      if (ranges.length > 0) {
        markIn(tree, ranges);
      }
    };
}

function markIn(parent: Root | Element, ranges: [number, number][]): void {
  const children: (RootContent | ElementContent)[] = [];
  for (const child of parent.children) {
    const start = child.position?.start.offset;
    const end = child.position?.end.offset;
    if (child.type === 'element' && !['pre', 'code', 'a'].includes(child.tagName)) {
      markIn(child, ranges);
      children.push(child);
    } else if (child.type === 'text' && start !== undefined && end === start + child.value.length) {
      children.push(...split(child.value, start, ranges));
    } else {
      // Offsets of a text with escaped characters do not fit the source. It stays unmarked.
      children.push(child);
    }
  }
  parent.children = children as typeof parent.children;
}

function split(value: string, start: number, ranges: [number, number][]): ElementContent[] {
  const nodes: ElementContent[] = [];
  let from = 0;
  for (const [first, last] of ranges) {
    const begin = Math.max(from, first - start);
    const end = Math.min(value.length, last - start);
    if (begin < end) {
      nodes.push({type: 'text', value: value.slice(from, begin)});
      const children: ElementContent[] = [{type: 'text', value: value.slice(begin, end)}];
      nodes.push({type: 'element', tagName: 'mark', properties: {}, children});
      from = end;
    }
  }
  nodes.push({type: 'text', value: value.slice(from)});
  return nodes.filter((node) => node.type !== 'text' || node.value !== '');
}
