/** Renders components in a test's document. */

import {act, type ReactNode} from 'react';
import {createRoot} from 'react-dom/client';
import {afterEach} from 'vitest';

(globalThis as {IS_REACT_ACT_ENVIRONMENT?: boolean}).IS_REACT_ACT_ENVIRONMENT = true;

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const clean of cleanups.splice(0)) {
    clean();
  }
});

/** Renders a component. The result shows another state of it, or removes it. */
export function render(node: ReactNode): {
  element: HTMLElement;
  show: (next: ReactNode) => void;
  remove: () => void;
} {
  const element = document.createElement('div');
  document.body.append(element);
  const root = createRoot(element);
  const show = (next: ReactNode): void => act(() => root.render(next));
  let isThere = true;
  const remove = (): void => {
    if (isThere) {
      isThere = false;
      act(() => root.unmount());
      element.remove();
    }
  };
  cleanups.push(remove);
  show(node);
  return {element, show, remove};
}

/** Types text into a field, as one input. */
export function type(field: HTMLTextAreaElement, text: string): void {
  const set = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value')!.set!;
  act(() => {
    set.call(field, text);
    field.dispatchEvent(new Event('input', {bubbles: true}));
  });
}

/** Presses a key. Returns false if the component prevented what it does by itself. */
export function press(element: Element, init: KeyboardEventInit): boolean {
  let isKept = true;
  act(() => {
    isKept = element.dispatchEvent(
      new KeyboardEvent('keydown', {bubbles: true, cancelable: true, ...init}),
    );
  });
  return isKept;
}

/** Clicks an element; `detail` is 2 for the second click of a double click. */
export const click = async (element: Element, detail = 1): Promise<void> =>
  act(async () => {
    element.dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true, detail}));
  });

/** Returns the button with an accessible name. */
export function findButton(element: Element, name: string): HTMLButtonElement {
  const buttons = [...element.querySelectorAll('button')];
  const found = buttons.find(
    (button) => (button.getAttribute('aria-label') ?? button.textContent) === name,
  );
  if (!found) {
    throw new Error(`no button ${name}`);
  }
  return found;
}
