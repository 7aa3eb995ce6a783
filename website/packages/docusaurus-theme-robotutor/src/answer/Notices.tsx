import type {ReactNode} from 'react';
import {AskButton} from '../compose/AskButton';
import {useAnswer} from './AnswerContext';
import {shorten} from './plainText';
import {exactWords, searchedWords, showingWords} from './words';
import styles from './answer.module.css';

// The look of the answer or its status says these already.
const SHOWN_ELSEWHERE = new Set([
  'no_model',
  'cut_off',
  'search_changed',
  'citations_added',
  'citations_corrected',
]);

/** Notices that say why the book is quoted. They stand above the passages. */
export const LEADING = new Set(['model_unavailable', 'model_declined', 'not_grounded']);

/** Characters of a question that its button shows. */
const EXACT_LENGTH = 80;

/**
 * The words that were searched for, if they are not the question. They stand above the answer.
 *
 * After a correction, a button searches the words as they were typed.
 */
export function SearchNote(): ReactNode {
  const {actions, turn} = useAnswer();
  const {asked, notices, searchQuestion} = turn;
  if (!searchQuestion || searchQuestion.trim() === asked.question.trim()) {
    return null;
  }
  const isChanged = notices.some(({code}) => code === 'search_changed');
  if (!isChanged) {
    return (
      <p className={styles.note} dir="auto">
        {searchedWords(searchQuestion)}
      </p>
    );
  }
  return (
    <p className={styles.note} dir="auto">
      {showingWords(searchQuestion)}{' '}
      <AskButton
        className={styles.textButton}
        onAsk={() => actions.onAsk({...asked, exactWords: true})}>
        {exactWords(shorten(asked.question, EXACT_LENGTH))}
      </AskButton>
    </p>
  );
}

/** The hints for the reader, below the answer. */
export function Notices(): ReactNode {
  const {turn} = useAnswer();
  const offers = turn.refusal?.offers ?? [];
  const notices = turn.notices.filter(
    ({code, text}) =>
      text !== '' &&
      !SHOWN_ELSEWHERE.has(code) &&
      !LEADING.has(code) &&
      // A button says it better.
      !(code === 'filtered' && offers.includes('drop_filters')),
  );
  return notices.map(({code, text}, at) => (
    <p key={at} className={styles.note} data-notice={code} dir="auto">
      {text}
    </p>
  ));
}
