import {useEffect, useId, useLayoutEffect, useRef, useState} from 'react';
import type {FormEvent, KeyboardEvent, ReactNode} from 'react';
import type {Selection} from '../conversation/model';
import {MAX_QUESTION_CHARS, MAX_SELECTION_CHARS} from '../conversation/requests';
import {sayProblem} from '../service/words';
import {useSettings} from '../settings';
import {ScopeChoice, type Scope, type ScopeId} from './ScopeChoice';
import {SelectionChip} from './SelectionChip';
import styles from './Composer.module.css';
import {
  sayAsk,
  sayCharactersLeft,
  sayFieldHint,
  sayFieldName,
  saySelectionHint,
  sayStop,
  sayWait,
} from './words';

/** Characters before the limit at which the counter appears. */
const COUNTER_FROM = 200;

/** The state that the field shows, and its requests to the panel. */
export interface ComposerProps {
  /** True while an answer is arriving; the button then stops it. */
  busy: boolean;
  /** The seconds until the next question may be asked. */
  waitS: number;
  /** The text that the question is about, if it is not about the book. */
  selection?: Selection | null;
  /** The part of the book that is asked. */
  scope: ScopeId;
  /** The parts that the reader can choose from. With fewer than two there is no choice. */
  scopes: readonly Scope[];
  onScope: (scope: ScopeId) => void;
  onRemoveSelection: () => void;
  onAsk: (question: string) => void;
  onStop: () => void;
  /** The field takes the focus each time that this value changes, and at the start if it is set. */
  autoFocusKey?: string | number;
}

/** The field for a question, with what the question is about. */
export function Composer(props: ComposerProps): ReactNode {
  const {busy, waitS, selection, onAsk, onStop} = props;
  const [text, setText] = useState('');
  const {name} = useSettings();
  const field = useGrowingField(text);
  const noteId = useId();
  useFocus(field, props.autoFocusKey);

  const question = text.trim();
  const isSelectionTooLong = (selection?.text.length ?? 0) > MAX_SELECTION_CHARS;
  const left = MAX_QUESTION_CHARS - question.length;
  const canAsk = !busy && waitS === 0 && question !== '' && left >= 0 && !isSelectionTooLong;

  const ask = (): void => {
    if (canAsk) {
      setText('');
      onAsk(question);
    }
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    ask();
  };
  const handleKey = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && !event.shiftKey && !isComposing(event)) {
      event.preventDefault();
      ask();
    }
  };

  return (
    <form className={styles.composer} onSubmit={submit}>
      {selection ? (
        <SelectionChip
          selection={selection}
          onRemove={() => {
            props.onRemoveSelection();
            field.current?.focus();
          }}
        />
      ) : (
        <ScopeChoice scope={props.scope} scopes={props.scopes} onScope={props.onScope} />
      )}
      {isSelectionTooLong && (
        <p className={styles.problem} role="alert">
          {sayProblem('selectionTooLong', name)}
        </p>
      )}
      <div className={styles.row}>
        <textarea
          ref={field}
          className={styles.field}
          rows={1}
          aria-label={sayFieldName()}
          aria-describedby={noteId}
          aria-invalid={left < 0}
          placeholder={selection ? saySelectionHint() : sayFieldHint()}
          enterKeyHint="send"
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={handleKey}
        />
        {/* One button that is never `disabled`, so that it keeps the focus. */}
        <button
          type={busy ? 'button' : 'submit'}
          className={busy ? styles.stop : styles.ask}
          aria-disabled={!busy && !canAsk}
          // The second click of a double click on "Ask" must not stop the answer.
          onClick={busy ? (event) => event.detail < 2 && onStop() : undefined}
        >
          {busy ? sayStop() : sayAsk()}
        </button>
      </div>
      <p id={noteId} className={left < 0 ? styles.problem : styles.note}>
        {waitS > 0 ? sayWait(waitS) : left <= COUNTER_FROM && sayCharactersLeft(left)}
      </p>
    </form>
  );
}

/** Returns true if Enter only confirms what an input method suggests. */
function isComposing({nativeEvent}: KeyboardEvent): boolean {
  // Safari ends the composition before it sends the key, but keeps the key code 229.
  return nativeEvent.isComposing || nativeEvent.keyCode === 229;
}

/** Makes a field as high as its text; the style sheet limits that. */
function useGrowingField(text: string): React.RefObject<HTMLTextAreaElement | null> {
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    const element = field.current;
    if (element) {
      element.style.blockSize = 'auto';
      const border = element.offsetHeight - element.clientHeight;
      element.style.blockSize = `${element.scrollHeight + border}px`;
    }
  }, [text]);
  return field;
}

function useFocus(
  field: React.RefObject<HTMLTextAreaElement | null>,
  key: string | number | undefined,
): void {
  useEffect(() => {
    if (key !== undefined) {
      field.current?.focus();
    }
  }, [field, key]);
}
