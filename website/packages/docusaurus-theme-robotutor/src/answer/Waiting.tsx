import {useEffect, useState, type ReactNode} from 'react';
import {useAnswer} from './AnswerContext';
import {readingWords, words} from './words';
import styles from './answer.module.css';

/** Seconds after which the words change, so that a reader sees that something happens. */
const READ_S = 2;
const SEARCH_S = 5;

/** Seconds after which a reader may take the passages that were found. */
const SLOW_S = 10;

/** Says what is happening while nothing of an answer has arrived. */
export function Waiting(): ReactNode {
  const {actions, turn} = useAnswer();
  const found = turn.sources.length;
  const waited = useSeconds(turn.id);
  const read = useSeconds(`${turn.id} ${found}`);
  const isSlow = waited >= SLOW_S && found > 0;
  return (
    <div className={styles.waiting} data-robotutor="waiting">
      <p className={styles.searching}>{sayStage(found, found > 0 ? read : waited)}</p>
      {isSlow && (
        <div className={styles.problem}>
          <p>{words.slow()}</p>
          <button type="button" className={styles.action} onClick={actions.onShowPassages}>
            {words.showPassages()}
          </button>
        </div>
      )}
    </div>
  );
}

function sayStage(found: number, seconds: number): string {
  if (found === 0) {
    return seconds < SEARCH_S ? words.searching() : words.stillSearching();
  }
  return seconds < READ_S ? readingWords(found) : words.writing();
}

/** Returns the whole seconds since a key has had its value. */
function useSeconds(key: string): number {
  const [since, setSince] = useState({key, at: Date.now()});
  const [now, setNow] = useState(since.at);
  if (since.key !== key) {
    setSince({key, at: now});
  }
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, []);
  return Math.floor((now - since.at) / 1000);
}
