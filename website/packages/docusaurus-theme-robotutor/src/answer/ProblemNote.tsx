import {useContext, type ReactNode} from 'react';
import {AskButton, AskingContext} from '../compose/AskButton';
import {sayOutcome, sayRetry} from '../conversation/outcome';
import {useSettings} from '../settings';
import {FirstPage} from '../panel/Unavailable';
import {useAnswer} from './AnswerContext';
import {words} from './words';
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
      {turn.status === 'failed' && <WayOn />}
    </div>
  );
}

/** The site's search with the question, or the first page of the book on a site without search. */
function WayOn(): ReactNode {
  const {actions, turn} = useAnswer();
  const {onSearch} = actions;
  return onSearch ? (
    <button
      type="button"
      className={styles.action}
      onClick={() => onSearch(turn.asked.question)}>
      {words.siteSearch()}
    </button>
  ) : (
    <FirstPage />
  );
}
