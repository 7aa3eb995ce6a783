import type {ReactNode} from 'react';
import {AskButton} from '../compose/AskButton';
import type {Asked} from '../conversation/model';
import type {Settings} from '../settings';
import styles from './Panel.module.css';
import {suggestQuestions} from './suggestions';
import {makeFilters, type Book} from './useBook';
import {words} from './words';

interface Props {
  settings: Settings;
  book: Book;
  onAsk: (asked: Asked) => void;
}

/** The panel's greeting before the first question. */
export default function Empty({settings, book, onAsk}: Props): ReactNode {
  const {name, greeting, suggestions} = settings;
  return (
    <div className={styles.empty}>
      <p className={styles.greeting}>{greeting ?? words.greeting()}</p>
      <p className={styles.intro}>{words.intro(name)}</p>
      <Suggestions
        asked={suggestions?.map((question) => ({question})) ?? askAbout(book)}
        onAsk={onAsk}
      />
    </div>
  );
}

function Suggestions({asked, onAsk}: {asked: Asked[]; onAsk: Props['onAsk']}): ReactNode {
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
            <AskButton className={styles.suggestion} onAsk={() => onAsk(entry)}>
              {entry.question}
            </AskButton>
          </li>
        ))}
      </ul>
    </>
  );
}

/** Questions about the page are asked of that page only. */
const askAbout = ({page, pages}: Book): Asked[] =>
  page
    ? suggestQuestions(page, pages).map((question) => ({
        question,
        filters: makeFilters('page', page),
      }))
    : [];
