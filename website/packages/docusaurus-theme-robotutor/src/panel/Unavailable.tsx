import Link from '@docusaurus/Link';
import {useAllPluginInstancesData} from '@docusaurus/useGlobalData';
import {useEffect, useState, type ReactNode} from 'react';
import {sayProblem} from '../service/words';
import styles from './Panel.module.css';
import {findFirstPage, findSearch, openSearch} from './siteSearch';
import {words} from './words';

interface Props {
  name: string;
  /** Is called before the reader goes to the page's search. */
  onLeave: () => void;
}

/** Says that the service is not available, and offers the site's search or the first page. */
export default function Unavailable({name, onLeave}: Props): ReactNode {
  const [hasSearch, setHasSearch] = useState(false);
  useEffect(() => setHasSearch(findSearch() !== null), []);
  const search = (): void => {
    onLeave();
    requestAnimationFrame(() => requestAnimationFrame(() => openSearch()));
  };
  return (
    <div className={styles.unavailable} data-robotutor="unavailable">
      <p>{sayProblem('down', name)}</p>
      {hasSearch ? (
        <button type="button" className={styles.quietButton} onClick={search}>
          {words.search()}
        </button>
      ) : (
        <FirstPage onLeave={onLeave} />
      )}
    </div>
  );
}

/** A link to the first page of the book. It shows nothing if the site has no docs. */
export function FirstPage({onLeave}: {onLeave?: () => void}): ReactNode {
  const docs = useAllPluginInstancesData('docusaurus-plugin-content-docs');
  const path = findFirstPage(docs?.default ?? Object.values(docs ?? {})[0]);
  return (
    path && (
      <Link to={path} className={styles.quietButton} onClick={onLeave}>
        {words.firstPage()}
      </Link>
    )
  );
}
