import {useId, useRef, useState} from 'react';
import type {FormEvent, ReactNode} from 'react';
import type {Turn} from '../conversation/model';
import {MAX_QUESTION_CHARS} from '../conversation/requests';
import styles from './Rating.module.css';
import {sayHelped, sayMissing, sayNo, sayNotSent, saySend, sayThanks, sayYes} from './words';

type Thumb = 'up' | 'down';

/** The turn to rate, and how its rating is sent. */
export interface RatingProps {
  turn: Turn;
  /** Sends the rating; returns false if that failed. `Conversation.rate` fits. */
  onRate: (turn: Turn, rating: Thumb, note?: string) => Promise<boolean>;
  /** What stands in the same row. */
  children?: ReactNode;
}

/**
 * The row below a complete answer, which asks if it helped.
 *
 * An answer without an id, which no service wrote, cannot be rated.
 */
export function Rating({turn, onRate, children}: RatingProps): ReactNode {
  const questionId = useId();
  const {sending, outcome, send} = useSending(turn, onRate);
  const [asksNote, setAsksNote] = useState(false);
  const noButton = useRef<HTMLButtonElement>(null);
  if (!['done', 'refused'].includes(turn.status) || turn.kind === 'reply') {
    return null;
  }

  const rate = async (rating: Thumb): Promise<void> => {
    setAsksNote(rating === 'down');
    await send(rating);
  };
  const sendNote = async (note: string): Promise<void> => {
    if (await send('down', note)) {
      noButton.current?.focus(); // the field with the focus goes away
      setAsksNote(false);
    }
  };
  return (
    <div className={styles.rating}>
      <div className={styles.row}>
        {children}
        {turn.answerId && (
          <span className={styles.thumbs} role="group" aria-labelledby={questionId}>
            <span id={questionId}>{sayHelped()}</span>
            {(['up', 'down'] as const).map((thumb) => (
              <button
                key={thumb}
                ref={thumb === 'down' ? noButton : undefined}
                type="button"
                aria-pressed={turn.rating === thumb}
                onClick={() => void rate(thumb)}
              >
                {thumb === 'up' ? sayYes() : sayNo()}
              </button>
            ))}
          </span>
        )}
        <span role="status">{outcome === 'sent' && sayThanks()}</span>
      </div>
      {asksNote && <Note sending={sending} onSend={sendNote} />}
      {outcome === 'failed' && (
        <p className={styles.problem} role="alert">
          {sayNotSent()}
        </p>
      )}
    </div>
  );
}

function Note(props: {sending: boolean; onSend: (note: string) => Promise<void>}): ReactNode {
  const {sending, onSend} = props;
  const [note, setNote] = useState('');
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (note.trim() && !sending) {
      void onSend(note.trim());
    }
  };
  return (
    <form className={styles.note} onSubmit={submit}>
      <label>
        {sayMissing()}
        <textarea
          rows={2}
          maxLength={MAX_QUESTION_CHARS}
          value={note}
          onChange={(event) => setNote(event.target.value)}
        />
      </label>
      <button type="submit" aria-disabled={!note.trim() || sending}>
        {saySend()}
      </button>
    </form>
  );
}

/** Sends ratings one after the other, so that the last one counts. */
function useSending(turn: Turn, onRate: RatingProps['onRate']) {
  const [sending, setSending] = useState(0);
  const [outcome, setOutcome] = useState<'sent' | 'failed' | null>(null);
  const last = useRef(Promise.resolve(true));
  const send = async (rating: Thumb, note?: string): Promise<boolean> => {
    setSending((count) => count + 1);
    setOutcome(null);
    const mine = last.current.then(() => onRate(turn, rating, note));
    last.current = mine;
    const isStored = await mine;
    setSending((count) => count - 1);
    if (last.current === mine) {
      setOutcome(isStored ? 'sent' : 'failed');
    }
    return isStored;
  };
  return {sending: sending > 0, outcome, send};
}
