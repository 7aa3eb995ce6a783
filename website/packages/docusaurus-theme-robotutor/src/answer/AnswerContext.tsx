import {createContext, useContext, type ReactNode, type RefObject} from 'react';
import type {AnswerActions, Turn} from '../conversation/model';
import type {Source} from '../service/protocol';

/** The answer that a part belongs to, with what it tells the panel. */
export interface AnswerContextValue {
  turn: Turn;
  actions: AnswerActions;
}

/**
 * The data that links in the text of an answer need.
 *
 * `latest` is read when a link is pressed. Text that arrives therefore renders no link again.
 */
export interface AnswerLinks {
  sources: Source[];
  latest: RefObject<AnswerContextValue>;
}

export const AnswerContext = createContext<AnswerContextValue | null>(null);
export const LinksContext = createContext<AnswerLinks | null>(null);

const NO_LINKS: AnswerLinks = {sources: [], latest: {current: null as never}};

/** Text of the book that is no answer: it has no citations, and its links stay text. */
export function Unlinked({children}: {children: ReactNode}): ReactNode {
  return <LinksContext.Provider value={NO_LINKS}>{children}</LinksContext.Provider>;
}

/** Returns the answer that a component is in. */
export function useAnswer(): AnswerContextValue {
  return need(useContext(AnswerContext));
}

/** Returns the sources of the answer that a link is in. */
export function useLinks(): AnswerLinks {
  return need(useContext(LinksContext));
}

function need<T>(value: T | null): T {
  if (!value) {
    throw new Error('This component must be inside an AnswerView.');
  }
  return value;
}
