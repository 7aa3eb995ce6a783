import {useEffect, useState, type ReactNode} from 'react';
import {useAnswer} from './AnswerContext';
import {copyAnswer} from './copyAnswer';
import {words} from './words';
import styles from './answer.module.css';

const SHOWN_MS = 2500;

/** The button that copies an answer, and what came of it. */
export function CopyButton(): ReactNode {
  const {turn} = useAnswer();
  const [result, setResult] = useState<'copied' | 'refused' | null>(null);
  useEffect(() => {
    const timer = result === 'copied' && window.setTimeout(() => setResult(null), SHOWN_MS);
    return () => window.clearTimeout(timer || undefined);
  }, [result]);
  return (
    <div className={styles.tools}>
      <button
        className={styles.textButton}
        type="button"
        onClick={() =>
          void copyAnswer(turn, window.location.origin).then((done) =>
            setResult(done ? 'copied' : 'refused'),
          )
        }>
        {words.copy()}
      </button>
      <span className={styles.note} role="status">
        {result === 'copied' && words.copied()}
        {result === 'refused' && words.notCopied()}
      </span>
    </div>
  );
}
