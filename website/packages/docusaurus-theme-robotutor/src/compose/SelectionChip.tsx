import {useState, type ReactNode} from 'react';
import {AnswerText} from '../answer/AnswerText';
import {Unlinked} from '../answer/AnswerContext';
import type {Selection} from '../conversation/model';
import styles from './Composer.module.css';
import {sayFromSelection, sayRemove, sayRemoveSelection, saySelectedText} from './words';

/** Characters of a selection that are drawn. The rest would slow the panel down and is not read. */
const MAX_SHOWN = 4000;

/** Tells that the question is about selected text, which opens below as it looks in the page. */
export function SelectionChip(props: {selection: Selection; onRemove: () => void}): ReactNode {
  const {selection, onRemove} = props;
  const [open, setOpen] = useState(false);
  return (
    <div className={styles.chip}>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>{sayFromSelection(selection)}</summary>
        {open && (
          // It scrolls, so the keyboard must reach it.
          <div className={styles.selected} tabIndex={0} role="group" aria-label={saySelectedText()}>
            <Unlinked>
              <AnswerText text={selection.text.slice(0, MAX_SHOWN)} />
            </Unlinked>
          </div>
        )}
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
