import type {ReactNode} from 'react';
import {useSettings} from '../settings';
import {useAnswer} from './AnswerContext';
import {fillContact} from './contact';
import {words} from './words';
import styles from './answer.module.css';

/** Ways to an answer outside of the panel: the site's search, and a person. */
export function WaysOn(): ReactNode {
  const {actions, turn} = useAnswer();
  const {contactUrl} = useSettings();
  const {question, pageUrl = window.location.pathname} = turn.asked;
  const contact = contactUrl
    ? fillContact(contactUrl, {question, page: window.location.origin + pageUrl})
    : null;
  const {onSearch} = actions;
  if (!contact && !onSearch) {
    return null;
  }
  return (
    <p className={styles.ways}>
      {onSearch && (
        <button type="button" className={styles.textButton} onClick={() => onSearch(question)}>
          {words.siteSearch()}
        </button>
      )}
      {contact && (
        <a className={styles.textButton} href={contact} rel="noopener" target="_blank">
          {words.contact()}
        </a>
      )}
    </p>
  );
}
