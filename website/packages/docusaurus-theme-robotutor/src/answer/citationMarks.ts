/** Citations such as `[1]` and `[1, 2]` in the text of an answer. */

import type {Element, ElementContent, Root, RootContent} from 'hast';
import {splitSentences} from './chooseQuote';

const CITATION = /\[(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\]/g;
const OPAQUE = new Set(['a', 'code', 'pre', 'math', 'svg']);
const BLOCKS = new Set(['p', 'li', 'td', 'th', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'blockquote']);

/** Returns the numbers of all citations in a text, each once, in the order of the text. */
export function readCitations(text: string): number[] {
  const numbers = [...text.matchAll(CITATION)].flatMap(([, list = '']) => readNumbers(list));
  return [...new Set(numbers)];
}

/** Reads a list of numbers such as `1, 2`. */
export function readNumbers(list: string): number[] {
  return list.split(/[,;]/).map((number) => Number.parseInt(number, 10));
}

/**
 * Makes `cite` elements of the citations in a tree, except in code, formulas and links.
 *
 * Each element has the written citation and the sentence that it stands in, as properties.
 */
export function markCitations() {
  return (tree: Root): void => {
    mark(tree, {text: ''});
  };
}

/** The text of the current block before the current node. */
interface Reading {
  text: string;
}

function mark(parent: Root | Element, reading: Reading): void {
  const children: (RootContent | ElementContent)[] = [];
  for (const child of parent.children) {
    if (child.type === 'text') {
      children.push(...splitText(child.value, reading));
    } else if (child.type !== 'element') {
      children.push(child);
    } else {
      const isFormula = String(child.properties.className ?? '').includes('math-');
      if (BLOCKS.has(child.tagName)) {
        reading.text = '';
      }
      if (isFormula || OPAQUE.has(child.tagName)) {
        reading.text += joinTexts(child);
      } else {
        mark(child, reading);
      }
      children.push(child);
    }
  }
  parent.children = children as typeof parent.children;
}

function splitText(value: string, reading: Reading): ElementContent[] {
  const nodes: ElementContent[] = [];
  let from = 0;
  for (const match of value.matchAll(CITATION)) {
    const [written] = match;
    const before = value.slice(from, match.index);
    reading.text += before;
    if (before) {
      nodes.push({type: 'text', value: before});
    }
    nodes.push({
      type: 'element',
      tagName: 'cite',
      properties: {dataSentence: lastSentence(reading.text)},
      children: [{type: 'text', value: written}],
    });
    from = match.index + written.length;
  }
  const rest = value.slice(from);
  reading.text += rest;
  return rest ? [...nodes, {type: 'text', value: rest}] : nodes;
}

// A sentence of a text is far shorter; without a bound, many citations in a long paragraph would
// each read the whole paragraph again.
const MAX_SENTENCE = 600;

function lastSentence(text: string): string {
  const near = text.slice(-MAX_SENTENCE).trimEnd();
  const last = splitSentences(near).pop();
  return last ? near.slice(last[0], last[1]).trim() : '';
}

function joinTexts(node: ElementContent): string {
  if (node.type === 'text') {
    return node.value;
  }
  return node.type === 'element' ? node.children.map(joinTexts).join('') : '';
}
