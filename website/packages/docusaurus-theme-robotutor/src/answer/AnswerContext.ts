import {createContext, useContext} from 'react';
import type {AnswerActions, Turn} from '../conversation/model';

/** The answer that a part belongs to, with what it tells the panel. */
export interface AnswerContextValue {
  turn: Turn;
  actions: AnswerActions;
}

const AnswerContext = createContext<AnswerContextValue | null>(null);

export const AnswerProvider = AnswerContext.Provider;

/** Returns the answer that a component is in. */
export function useAnswer(): AnswerContextValue {
  const value = useContext(AnswerContext);
  if (!value) {
    throw new Error('useAnswer must be called inside an AnswerView.');
  }
  return value;
}
