import {useEffect, useState, type ReactNode} from 'react';
import Head from '@docusaurus/Head';
import {useLocation} from '@docusaurus/router';
import {useBaseUrlUtils} from '@docusaurus/useBaseUrl';
import {copyMarkdown, markdownAddress, type CopyResult} from './pageMarkdown';
import styles from './styles.module.css';
import {copyPageWords} from './words';

const COPIED_MS = 4000;

/** A button that copies the page as Markdown, and the link to the Markdown file in the head. */
export function CopyPage(): ReactNode {
  const {withBaseUrl} = useBaseUrlUtils();
  const {pathname} = useLocation();
  const address = markdownAddress(pathname, withBaseUrl('/'));
  return (
    <>
      <Head>
        <link rel="alternate" type="text/markdown" href={address} />
      </Head>
      <CopyButton key={address} address={address} />
    </>
  );
}

/** The button, with a status next to it that screen readers announce. */
function CopyButton({address}: {address: string}): ReactNode {
  const [result, setResult] = useState<CopyResult | null>(null);
  const [busy, setBusy] = useState(false);
  const words = copyPageWords();

  useEffect(() => {
    if (result !== 'copied') return undefined;
    const timer = setTimeout(() => setResult(null), COPIED_MS);
    return () => clearTimeout(timer);
  }, [result]);

  const copy = async (): Promise<void> => {
    if (busy) return;
    setBusy(true);
    setResult(null);
    setResult(await copyMarkdown(address));
    setBusy(false);
  };

  return (
    <div className={styles.copyPage}>
      <span role="status" className={styles.status}>
        {result === 'copied' && words.copied}
        {result === 'missing' && words.missing}
        {result === 'refused' && (
          <>
            {words.failed} <a href={address}>{words.open}</a>
          </>
        )}
      </span>
      <button type="button" className={styles.button} onClick={() => void copy()}>
        {words.copy}
      </button>
    </div>
  );
}
