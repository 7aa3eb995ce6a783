import {createContext, useContext, type ReactNode} from 'react';

/** Says if a question may be asked now. */
export interface Asking {
  /** False while an answer is arriving or the reader has to wait. */
  canAsk: boolean;
  /** The seconds until the next question may be asked, if too many were asked. */
  waitS: number;
}

export const AskingContext = createContext<Asking>({canAsk: true, waitS: 0});

/**
 * A button that asks something.
 *
 * While nothing may be asked, it looks so and does nothing. It is never `disabled`, so that it
 * keeps the focus.
 */
export function AskButton(props: {
  className: string | undefined;
  onAsk: () => void;
  children: ReactNode;
}): ReactNode {
  const {className, onAsk, children} = props;
  const {canAsk} = useContext(AskingContext);
  return (
    <button
      type="button"
      className={className}
      dir="auto"
      aria-disabled={!canAsk || undefined}
      onClick={canAsk ? onAsk : undefined}>
      {children}
    </button>
  );
}
