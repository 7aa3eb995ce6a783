import {useEffect, useRef, useState, type ReactNode} from 'react';
import type {Selection} from '../conversation/model';

export type Scope = 'book' | 'module' | 'page';

export interface ComposerProps {
  busy: boolean;
  waitS: number;
  selection: Selection | null;
  scope: Scope;
  scopes: {id: Scope; label: string}[];
  onScope: (scope: Scope) => void;
  onRemoveSelection: () => void;
  onAsk: (question: string) => void;
  onStop: () => void;
  autoFocusKey: number;
}

export default function Composer(props: ComposerProps): ReactNode {
  const [text, setText] = useState('');
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (props.autoFocusKey > 0) field.current?.focus();
  }, [props.autoFocusKey]);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        props.onAsk(text);
        setText('');
      }}>
      <textarea
        ref={field}
        aria-label="Ask about this book"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <button type="submit">Ask</button>
    </form>
  );
}
