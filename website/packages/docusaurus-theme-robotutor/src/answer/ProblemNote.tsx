import {useEffect, useState, type ReactNode} from 'react';
import {useAnswer} from './AnswerContext';
import {waitWords, words} from './words';
import styles from './answer.module.css';

/** Why an answer did not arrive or is not complete, with a button to ask again. */
export function ProblemNote(): ReactNode {
  const {actions, turn} = useAnswer();
  const limited = turn.status === 'failed' && turn.problem?.code === 'RATE_LIMITED';
  const waitS = useCountdown(limited ? (turn.problem?.retryAfterS ?? 0) : 0);
  const message = readMessage();
  if (!message) {
    return null;
  }
  return (
    <div className={styles.problem} data-robotutor="problem">
      <p dir="auto">{message}</p>
      <button
        className={styles.action}
        disabled={waitS > 0}
        type="button"
        onClick={() => actions.onRetry(turn)}>
        {words.retry()}
      </button>
    </div>
  );

  function readMessage(): string {
    if (turn.status === 'stopped') {
      return words.stopped();
    }
    if (turn.status === 'cut_off') {
      return words.cutOff();
    }
    if (turn.status !== 'failed') {
      return '';
    }
    return limited ? waitWords(waitS) : turn.problem?.message || words.failed();
  }
}

/** Counts down from a number of seconds; returns the seconds that are left. */
function useCountdown(seconds: number): number {
  const [left, setLeft] = useState(Math.ceil(seconds));
  useEffect(() => {
    setLeft(Math.ceil(seconds));
    if (seconds <= 0) {
      return undefined;
    }
    const until = Date.now() + seconds * 1000;
    const timer = window.setInterval(() => {
      const rest = Math.max(0, Math.ceil((until - Date.now()) / 1000));
      setLeft(rest);
      if (rest === 0) {
        window.clearInterval(timer);
      }
    }, 1000);
    return () => window.clearInterval(timer);
  }, [seconds]);
  return left;
}
