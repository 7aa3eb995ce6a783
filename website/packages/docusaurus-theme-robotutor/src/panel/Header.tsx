import type {ReactNode} from 'react';
import styles from './Panel.module.css';
import {words} from './words';

interface Props {
  name: string;
  /** For example `Ctrl+I`; null without a shortcut. */
  shortcut: string | null;
  canClear: boolean;
  onClear: () => void;
  onClose: () => void;
}

/** The panel's title and its buttons. */
export default function Header({name, shortcut, canClear, onClear, onClose}: Props): ReactNode {
  return (
    <div className={styles.header}>
      <h2 className={styles.title}>{name}</h2>
      <button
        type="button"
        className={styles.iconButton}
        aria-label={words.clear()}
        title={words.clear()}
        disabled={!canClear}
        onClick={onClear}>
        <svg viewBox="0 0 24 24" width="20" height="20" aria-hidden="true">
          <path d="M12 5v14M5 12h14" stroke="currentColor" strokeWidth="2" strokeLinecap="round" />
        </svg>
      </button>
      <button
        type="button"
        className={styles.iconButton}
        aria-label={words.close()}
        title={shortcut ? `${words.close()} (${shortcut})` : words.close()}
        onClick={onClose}>
        <svg viewBox="0 0 24 24" width="20" height="20" aria-hidden="true">
          <path
            d="M6 6l12 12M18 6L6 18"
            stroke="currentColor"
            strokeWidth="2"
            strokeLinecap="round"
          />
        </svg>
      </button>
    </div>
  );
}
