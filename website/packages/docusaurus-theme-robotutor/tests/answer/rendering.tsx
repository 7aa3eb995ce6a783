/** Renders an answer into the page of a test. */

import {act} from 'react';
import {createRoot, type Root} from 'react-dom/client';
import {AnswerView} from '../../src/answer/AnswerView';
import {AskingContext, type Asking} from '../../src/compose/AskButton';
import type {AnswerActions, Turn} from '../../src/conversation/model';
import {makeActions} from './turns';

(globalThis as {IS_REACT_ACT_ENVIRONMENT?: boolean}).IS_REACT_ACT_ENVIRONMENT = true;

let root: Root | null = null;

/** Shows a turn in the page, in place of the one before, and waits for formulas to load. */
export async function show(
  turn: Turn,
  actions: Partial<AnswerActions> = {},
  asking: Asking = {canAsk: true, waitS: 0},
): Promise<HTMLElement> {
  await draw(turn, actions, asking);
  // Markdown and formulas are drawn by modules that are loaded when they are first needed.
  await act(async () => {
    await import('../../src/answer/Markdown');
    await import('../../src/answer/formulas');
  });
  return document.body;
}

/** Shows a turn without waiting for formulas. */
export async function draw(
  turn: Turn,
  actions: Partial<AnswerActions> = {},
  asking: Asking = {canAsk: true, waitS: 0},
): Promise<HTMLElement> {
  if (!root) {
    const element = document.createElement('div');
    document.body.append(element);
    root = createRoot(element);
  }
  await act(async () =>
    root!.render(
      <AskingContext.Provider value={asking}>
        <AnswerView actions={makeActions(actions)} turn={turn} />
      </AskingContext.Provider>,
    ),
  );
  return document.body;
}

/** Removes what a test has shown. */
export async function clear(): Promise<void> {
  await act(async () => root?.unmount());
  root = null;
  document.body.replaceChildren();
}

/** Returns all elements that match a selector. */
export const all = (selector: string): HTMLElement[] =>
  Array.from(document.querySelectorAll<HTMLElement>(selector));

/** Presses the button with a name. */
export async function press(name: string): Promise<void> {
  const button = all('button').find((each) => each.textContent === name);
  if (!button) {
    throw new Error(`No button is named ${name}.`);
  }
  await act(async () => button.click());
}
