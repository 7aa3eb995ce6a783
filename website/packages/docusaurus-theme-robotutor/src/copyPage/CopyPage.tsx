import type {ReactNode} from 'react';
import Head from '@docusaurus/Head';
import {useLocation} from '@docusaurus/router';
import {translate} from '@docusaurus/Translate';
import {useBaseUrlUtils} from '@docusaurus/useBaseUrl';
import {CopyButton} from '../clipboard/CopyButton';
import {copyMarkdown, markdownAddress} from './pageMarkdown';
import {PageMenu} from './PageMenu';
import styles from './styles.module.css';

/**
 * A button that copies the page as Markdown, a menu of programs to read it with, and the link to the
 * Markdown file in the head.
 */
export function CopyPage(): ReactNode {
  const {withBaseUrl} = useBaseUrlUtils();
  const {pathname} = useLocation();
  const address = markdownAddress(pathname, withBaseUrl('/'));
  const missing = translate({
    id: 'theme.robotutor.copyPage.missing',
    message: 'This page is not available as Markdown.',
    description: 'The status if the site has no Markdown file of the page',
  });
  return (
    <>
      <Head>
        <link rel="alternate" type="text/markdown" href={address} />
      </Head>
      <div className={styles.copyPage}>
        <CopyButton
          key={address}
          className={styles.button}
          statusClassName={styles.status}
          copy={() => copyMarkdown(address, pathname)}
          failures={{missing, refused: <Refused address={address} />}}>
          {translate({
            id: 'theme.robotutor.copyPage.copy',
            message: 'Copy page as Markdown',
            description: 'The button that copies the page as Markdown text',
          })}
        </CopyButton>
        <PageMenu key={pathname} address={address} />
      </div>
    </>
  );
}

function Refused({address}: {address: string}): ReactNode {
  return (
    <>
      {translate({
        id: 'theme.robotutor.copyPage.failed',
        message: 'Your browser did not allow copying.',
        description: 'The status if the browser refuses access to the clipboard',
      })}{' '}
      <a href={address}>
        {translate({
          id: 'theme.robotutor.copyPage.open',
          message: 'Open the Markdown file',
          description: 'The link to the Markdown file of the page, shown if copying failed',
        })}
      </a>
    </>
  );
}
