import type {ReactNode} from 'react';
import DocBreadcrumbs from '@theme-init/DocBreadcrumbs';
import {CopyPage} from '../../copyPage/CopyPage';
import {useSettings} from '../../settings';
import styles from './styles.module.css';

/**
 * The breadcrumbs of a page of the docs, and at the end of their line the button that copies it.
 *
 * The button needs the page's Markdown file, which not every site has, so it is an option.
 */
export default function DocBreadcrumbsWithCopy(): ReactNode {
  const {copyPage} = useSettings();
  if (!copyPage) {
    return <DocBreadcrumbs />;
  }
  return (
    <div className={`robotutor-page-line ${styles.line}`}>
      <div className={styles.breadcrumbs}>
        <DocBreadcrumbs />
      </div>
      <CopyPage />
    </div>
  );
}
