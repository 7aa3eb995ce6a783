/** The plugins that draw formulas. This module is loaded only for a text with a formula. */

import rehypeKatex from 'rehype-katex';
import remarkMath from 'remark-math';
import type {PluggableList} from 'unified';

/** The plugins for Markdown with formulas. */
export interface FormulaPlugins {
  remark: PluggableList;
  rehype: PluggableList;
}

/** Makes the plugins. A page without the styles of KaTeX gets MathML, which browsers draw. */
export function makeFormulaPlugins(): FormulaPlugins {
  const options = {
    throwOnError: false,
    strict: 'ignore' as const,
    trust: false,
    // In em and in macros: a formula cannot cover the page or keep the browser busy.
    maxSize: 20,
    maxExpand: 200,
    errorColor: 'inherit',
    output: hasKatexStyles() ? ('htmlAndMathml' as const) : ('mathml' as const),
  };
  return {
    remark: [[remarkMath, {singleDollarTextMath: true}]],
    rehype: [[rehypeKatex, options]],
  };
}

/** Returns true if the page has the styles of KaTeX, which hide its MathML from sight. */
function hasKatexStyles(): boolean {
  const probe = document.createElement('span');
  probe.className = 'katex';
  probe.innerHTML = '<span class="katex-mathml"></span>';
  document.body.append(probe);
  const found = getComputedStyle(probe.firstElementChild!).position === 'absolute';
  probe.remove();
  return found;
}
