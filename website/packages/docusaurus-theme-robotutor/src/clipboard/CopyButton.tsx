import {useEffect, useState, type ReactNode} from 'react';
import {translate} from '@docusaurus/Translate';

/** The result of copying: `missing` means that there is nothing to copy. */
export type CopyResult = 'copied' | 'refused' | 'missing';

const SHOWN_MS = 4000;

interface Props {
  children: ReactNode;
  className: string | undefined;
  statusClassName: string | undefined;
  copy: () => Promise<CopyResult>;
  /** The status after a copy that failed. */
  failures: Partial<Record<CopyResult, ReactNode>>;
}

/** A button that copies something, and a status that screen readers announce. */
export function CopyButton(props: Props): ReactNode {
  const {children, className, statusClassName, copy, failures} = props;
  const [result, setResult] = useState<CopyResult | null>(null);
  const [busy, setBusy] = useState(false);

  useEffect(() => {
    if (result !== 'copied') return undefined;
    const timer = setTimeout(() => setResult(null), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [result]);

  const start = async (): Promise<void> => {
    if (busy) return;
    setBusy(true);
    setResult(null);
    setResult(await copy());
    setBusy(false);
  };

  return (
    <>
      <button
        type="button"
        className={className}
        aria-disabled={busy || undefined}
        onClick={() => void start()}>
        {children}
      </button>
      <span role="status" className={statusClassName}>
        {result === 'copied'
          ? translate({id: 'theme.robotutor.copy.copied', message: 'Copied'})
          : result && failures[result]}
      </span>
    </>
  );
}
