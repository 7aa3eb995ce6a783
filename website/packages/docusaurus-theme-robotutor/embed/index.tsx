/** The script tag: the element `<robo-tutor>` with the panel, for pages that Docusaurus did not build. */

import './page.css';

import {options} from 'preact';
import {createRoot, type Root} from 'react-dom/client';

import Launcher from '../src/panel/Launcher';
import {followColorScheme} from './colorScheme';
import {setSource} from './katex';
import {setSite} from './site';

// React draws after all listeners of an event have run. Preact would draw between them.
options.debounceRendering = (draw) => void setTimeout(draw);

/** The style sheets of the panel, which the build writes here. */
const STYLES = 'ROBOTUTOR_STYLES';

/** The button and the panel. Its data attributes are those of the script tag. */
class RoboTutor extends HTMLElement {
  #root: Root | undefined;

  connectedCallback(): void {
    this.dataset.robotutor = 'element';
    this.#root = createRoot(this);
    this.#root.render(<Launcher />);
  }

  disconnectedCallback(): void {
    this.#root?.unmount();
  }
}

/** Adds the panel to the page once. A mistake in the tag is one message in the console. */
function start(script: HTMLScriptElement): void {
  if (customElements.get('robo-tutor')) {
    return;
  }
  try {
    setSite(script.dataset);
  } catch (error) {
    console.error(`RoboTutor: ${(error as Error).message}`);
    return;
  }
  setSource(script.src);
  const sheet = document.createElement('style');
  sheet.textContent = STYLES;
  document.head.append(sheet);
  followColorScheme();
  customElements.define('robo-tutor', RoboTutor);
  const add = (): void => document.body.append(document.createElement('robo-tutor'));
  if (document.body) {
    add();
  } else {
    document.addEventListener('DOMContentLoaded', add);
  }
}

const {currentScript} = document;
if (currentScript instanceof HTMLScriptElement) {
  start(currentScript);
}
