import type {ReactNode} from 'react';
import DocBreadcrumbs from '@theme-init/DocBreadcrumbs';
import {CopyPage} from '../../copyPage/CopyPage';
import styles from './styles.module.css';

/** The breadcrumbs of a page of the docs, and at the end of their line the button that copies it. */
export default function DocBreadcrumbsWithCopy(): ReactNode {
  return (
    <div className={`robotutor-page-line ${styles.line}`}>
      <div className={styles.breadcrumbs}>
        <DocBreadcrumbs />
      </div>
      <CopyPage />
    </div>
  );
}
