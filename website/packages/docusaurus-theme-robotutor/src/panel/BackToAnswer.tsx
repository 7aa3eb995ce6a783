import type {ReactNode} from 'react';
import {createPortal} from 'react-dom';
import styles from './Launcher.module.css';
import {words} from './words';

/** The button that shows the answer again which a jump has hidden on a small screen. */
export function BackToAnswer({onBack}: {onBack: () => void}): ReactNode {
  return createPortal(
    <button type="button" className={styles.back} data-robotutor="back" onClick={onBack}>
      {words.back()}
    </button>,
    document.body,
  );
}
