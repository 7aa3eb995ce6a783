import type {ReactNode} from 'react';
import {translate} from '@docusaurus/Translate';
import {CopyButton} from '../clipboard/CopyButton';
import {copyText} from '../clipboard/copyText';
import {useAnswer} from './AnswerContext';
import {writeMarkdown} from './copyAnswer';
import styles from './answer.module.css';

/** The button that copies an answer as Markdown. */
export function CopyAnswer(): ReactNode {
  const {turn} = useAnswer();
  const refused = translate({
    id: 'theme.robotutor.copy.answerRefused',
    message: 'Your browser did not allow copying. Select the text and copy it yourself.',
  });
  return (
    <div className={styles.tools}>
      <CopyButton
        className={styles.textButton}
        statusClassName={styles.note}
        copy={async () => {
          const text = writeMarkdown(turn, window.location.origin);
          return (await copyText(text)) ? 'copied' : 'refused';
        }}
        failures={{refused}}>
        {translate({id: 'theme.robotutor.copy.answer', message: 'Copy'})}
      </CopyButton>
    </div>
  );
}
