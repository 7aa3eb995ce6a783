import type {ReactNode} from 'react';
import {AskButton} from '../compose/AskButton';
import type {ScopeId} from '../compose/ScopeChoice';
import type {Settings} from '../settings';
import styles from './Panel.module.css';
import {useSuggestions, type Suggestion} from './suggestions';
import type {Book} from './useBook';
import {words} from './words';

interface Props {
  settings: Settings;
  book: Book;
  onAsk: (part: ScopeId, question: string) => void;
  /** Brings back the conversation that was forgotten last; null if there is none. */
  onUndo: (() => void) | null;
}

/** The panel's greeting before the first question. */
export default function Empty({settings, book, onAsk, onUndo}: Props): ReactNode {
  const {name, greeting, suggestions, subjects} = settings;
  const made = useSuggestions(book, subjects);
  return (
    <div className={styles.empty}>
      <p className={styles.greeting}>{greeting ?? words.greeting()}</p>
      <p className={styles.intro}>{words.intro(name)}</p>
      <Suggestions
        asked={suggestions?.map((question) => ({question, part: 'book'})) ?? made}
        onAsk={onAsk}
      />
      {onUndo && (
        <p className={styles.undo}>
          {words.cleared()}{' '}
          <button type="button" className={styles.quietButton} onClick={onUndo}>
            {words.undo()}
          </button>
        </p>
      )}
    </div>
  );
}

function Suggestions({asked, onAsk}: {asked: Suggestion[]; onAsk: Props['onAsk']}): ReactNode {
  if (asked.length === 0) {
    return null;
  }
  return (
    <>
      <p className={styles.label} id="robotutor-suggestions">
        {words.suggestions()}
      </p>
      <ul className={styles.suggestions} aria-labelledby="robotutor-suggestions">
        {asked.map((entry) => (
          <li key={entry.question}>
            <AskButton
              className={styles.suggestion}
              onAsk={() => onAsk(entry.part, entry.question)}>
              {entry.question}
            </AskButton>
          </li>
        ))}
      </ul>
    </>
  );
}
