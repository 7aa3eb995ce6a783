import type {ReactNode} from 'react';
import {words} from './words';
import styles from './answer.module.css';

interface Props {
  open: boolean;
  onToggle: (open: boolean) => void;
  /** True in the caption of what is folded. */
  isFold?: boolean;
}

/** A button that shows all of something, and less again. */
export function Toggle({open, onToggle, isFold = false}: Props): ReactNode {
  return (
    <button
      aria-expanded={open}
      className={isFold ? styles.fold : styles.textButton}
      type="button"
      onClick={() => onToggle(!open)}>
      {open ? words.less() : isFold ? words.show() : words.more()}
    </button>
  );
}
