import type {ReactNode} from 'react';
import type {Selection} from '../conversation/model';
import styles from './Composer.module.css';
import {sayFromSelection, sayRemove, sayRemoveSelection, saySelectedText} from './words';

/** Tells that the question is about selected text, which opens below. */
export function SelectionChip(props: {selection: Selection; onRemove: () => void}): ReactNode {
  const {selection, onRemove} = props;
  return (
    <div className={styles.chip}>
      <details>
        <summary>{sayFromSelection(selection.words)}</summary>
        {/* It scrolls, so the keyboard must reach it. */}
        <pre className={styles.selected} tabIndex={0} role="group" aria-label={saySelectedText()}>
          {selection.text}
        </pre>
      </details>
      <button
        type="button"
        className={styles.remove}
        aria-label={sayRemoveSelection()}
        onClick={onRemove}
      >
        {sayRemove()}
      </button>
    </div>
  );
}
