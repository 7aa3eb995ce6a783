/** The formulas of Markdown, drawn by KaTeX. This module is loaded only for a text with a formula. */

import katex from 'katex';
import {mathFromMarkdown} from 'mdast-util-math';
import {math} from 'micromark-extension-math';
import {useLayoutEffect, useRef, type ReactNode} from 'react';
import type {FormulaSyntax} from './parseMarkdown';

/** The syntax of formulas between dollar signs. */
export const formulaSyntax: FormulaSyntax = {syntax: math(), tree: mathFromMarkdown()};

const OPTIONS = {
  throwOnError: false,
  strict: 'ignore',
  trust: false,
  // In em and in macros: a formula cannot cover the page or keep the browser busy.
  maxSize: 20,
  maxExpand: 200,
  errorColor: 'inherit',
} as const;

interface Props {
  tex: string;
  /** True for a formula of its own line. */
  display: boolean;
}

/** A formula. A page without the styles of KaTeX gets MathML, which browsers draw. */
export function Formula({tex, display}: Props): ReactNode {
  const box = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const output = hasKatexStyles() ? 'htmlAndMathml' : 'mathml';
    try {
      katex.render(tex, element, {...OPTIONS, output, displayMode: display});
    } catch {
      element.textContent = tex;
    }
  }, [tex, display]);
  return <span ref={box} />;
}

let styled: boolean | undefined;

/** Returns true if the page has the styles of KaTeX, which hide its MathML from sight. */
function hasKatexStyles(): boolean {
  if (styled === undefined) {
    const probe = document.createElement('span');
    probe.className = 'katex';
    const inner = probe.appendChild(document.createElement('span'));
    inner.className = 'katex-mathml';
    document.body.append(probe);
    styled = getComputedStyle(inner).position === 'absolute';
    probe.remove();
  }
  return styled;
}
