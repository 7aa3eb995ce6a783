import type {ReactNode} from 'react';
import {translate} from '@docusaurus/Translate';
import {CopyButton} from '../clipboard/CopyButton';
import {copyText} from '../clipboard/copyText';
import type {Turn} from '../conversation/model';
import {makeAskLink} from '../panel/askLink';
import {writeMarkdown} from './copyAnswer';
import styles from './answer.module.css';

/** The buttons that copy an answer as Markdown, and a link that asks its question again. */
export function AnswerTools({turn}: {turn: Turn}): ReactNode {
  const refused = translate({
    id: 'theme.robotutor.copy.answerRefused',
    message: 'Your browser did not allow copying. Select the text and copy it yourself.',
  });
  const copy = (read: () => string) => async () =>
    (await copyText(read())) ? ('copied' as const) : ('refused' as const);
  const shared = {
    className: styles.textButton,
    statusClassName: styles.note,
    failures: {refused},
  };
  return (
    <span className={styles.tools}>
      {turn.status === 'done' && (
        <CopyButton {...shared} copy={copy(() => writeMarkdown(turn, window.location.origin))}>
          {translate({id: 'theme.robotutor.copy.answer', message: 'Copy'})}
        </CopyButton>
      )}
      {!turn.asked.selection && (
        <CopyButton {...shared} copy={copy(() => makeAskLink(turn.asked, window.location))}>
          {translate({id: 'theme.robotutor.copy.link', message: 'Copy link'})}
        </CopyButton>
      )}
    </span>
  );
}
