import {useEffect, useState, type ReactNode} from 'react';
import {AskButton} from '../compose/AskButton';
import type {Asked, Turn} from '../conversation/model';
import {sayCaveat} from '../conversation/outcome';
import {decode} from '../addresses';
import type {Page} from '../service/requests';
import {useSiteSettings} from '../settings';
import styles from './Panel.module.css';
import {suggestNeighbors} from './suggestions';
import {fetchPage, findPage} from './useBook';
import {words} from './words';

const MAX_FOLLOW_UPS = 2;

interface Props {
  turn: Turn;
  onAsk: (asked: Asked) => void;
}

/** Questions about the sections next to the one that an answer cites first. */
export function FollowUps({turn, onAsk}: Props): ReactNode {
  const url = findCited(turn);
  const page = useCitedPage(url);
  if (!page || !url) {
    return null;
  }
  const anchor = decode(url.split('#')[1] ?? '');
  const questions = suggestNeighbors(page, anchor).slice(0, MAX_FOLLOW_UPS);
  return (
    questions.length > 0 && (
      <div className={styles.followUps} data-robotutor="follow-ups">
        <p className={styles.label}>{words.followUps()}</p>
        <ul className={styles.suggestions}>
          {questions.map((question) => (
            <li key={question}>
              <AskButton
                className={styles.suggestion}
                onAsk={() => onAsk({question, pageUrl: window.location.pathname})}>
                {question}
              </AskButton>
            </li>
          ))}
        </ul>
      </div>
    )
  );
}

/** Returns the address of the first place that an answer from the whole book cites, or null. */
function findCited(turn: Turn): string | null {
  const {asked, kind, passages, sentences, sources} = turn;
  if (asked.selection || sayCaveat(turn) || !['extracted', 'generated'].includes(kind ?? '')) {
    return null;
  }
  const first = sentences.flatMap(({cited}) => cited)[0];
  const source = sources.find(({number}) => number === first);
  return passages[0]?.citation.url || source?.url || null;
}

/** Returns the page at an address once the service has named its sections. */
function useCitedPage(url: string | null): Page | null {
  const settings = useSiteSettings();
  const [page, setPage] = useState<Page | null>(null);
  useEffect(() => {
    let isCurrent = true;
    setPage(null);
    if (url) {
      const path = url.split('#')[0] ?? '';
      fetchPage(settings, path).then(
        (pages) => isCurrent && setPage(findPage(pages, path)),
        () => undefined, // an answer is complete without further questions
      );
    }
    return () => {
      isCurrent = false;
    };
  }, [url, settings]);
  return page;
}
