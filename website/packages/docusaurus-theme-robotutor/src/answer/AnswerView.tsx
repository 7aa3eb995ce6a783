import type {ReactNode} from 'react';
import type {AnswerActions, Turn} from '../conversation/model';

export default function AnswerView({turn}: {turn: Turn; actions: AnswerActions}): ReactNode {
  return <p>{turn.text || turn.problem?.message || turn.status}</p>;
}
