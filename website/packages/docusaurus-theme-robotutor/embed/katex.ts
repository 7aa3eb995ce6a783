/** KaTeX, which is loaded with the first formula. */

import type {KatexOptions} from 'katex';

interface Katex {
  render: (tex: string, element: HTMLElement, options: KatexOptions) => void;
}

declare global {
  interface Window {
    katex?: Katex;
  }
}

let source = '';
let loading: Promise<void> | undefined;

/** Names the script that the panel came with. The file of KaTeX is beside it. */
export function setSource(script: string): void {
  source = new URL('robotutor-katex.js', new URL(script, document.baseURI)).href;
}

const load = (): Promise<void> =>
  new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = source;
    script.onload = () => resolve();
    script.onerror = () => reject(new Error('KaTeX could not be loaded.'));
    document.head.append(script);
  });

/** Draws a formula. Until KaTeX has arrived, and without it, the formula stays readable as TeX. */
function render(tex: string, element: HTMLElement, options: KatexOptions): void {
  if (window.katex) {
    window.katex.render(tex, element, options);
    return;
  }
  element.textContent = tex;
  loading ??= load().catch(() => void (loading = undefined));
  void loading.then(() => {
    if (element.textContent === tex && window.katex) {
      window.katex.render(tex, element, options);
    }
  });
}

export default {render};
