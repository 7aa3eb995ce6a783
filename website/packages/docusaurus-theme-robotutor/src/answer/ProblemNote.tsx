import {useContext, type ReactNode} from 'react';
import {AskButton, AskingContext} from '../compose/AskButton';
import {sayOutcome, sayRetry} from '../conversation/outcome';
import {useSettings} from '../settings';
import {useAnswer} from './AnswerContext';
import styles from './answer.module.css';

/** The reason why an answer did not arrive or is not complete, with a button to ask again. */
export function ProblemNote(): ReactNode {
  const {actions, turn} = useAnswer();
  const {waitS} = useContext(AskingContext);
  const {name} = useSettings();
  const message = turn.status === 'refused' ? '' : sayOutcome(turn, name, waitS);
  if (!message) {
    return null;
  }
  return (
    <div className={styles.problem} data-robotutor="problem">
      <p dir="auto">{message}</p>
      <AskButton className={styles.action} onAsk={() => actions.onRetry(turn)}>
        {sayRetry()}
      </AskButton>
    </div>
  );
}
