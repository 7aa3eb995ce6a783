import {lazy, Suspense, type ReactNode} from 'react';
import ErrorBoundary from '@docusaurus/ErrorBoundary';
import useDocusaurusContext from '@docusaurus/useDocusaurusContext';
import CodeBlock from '@theme/CodeBlock';
import {words} from './words';
import styles from './text.module.css';

// The site's own drawing of diagrams, which is large. It is loaded with the first diagram.
const Mermaid = lazy(() => import(/* webpackChunkName: "robotutor-diagrams" */ '@theme/Mermaid'));

/** A Mermaid diagram as the site draws it; its source if the site draws none. */
export function Diagram({source}: {source: string}): ReactNode {
  const {siteConfig} = useDocusaurusContext();
  const code = <CodeBlock language="mermaid">{source}</CodeBlock>;
  return siteConfig.markdown?.mermaid ? (
    <ErrorBoundary fallback={() => code}>
      <Suspense fallback={code}>
        {/* A wide diagram is in a box that the keyboard can scroll. */}
        <div aria-label={words.diagram()} className={styles.diagram} role="region" tabIndex={0}>
          <Mermaid value={source} />
        </div>
      </Suspense>
    </ErrorBoundary>
  ) : (
    code
  );
}
