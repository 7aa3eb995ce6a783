import {useEffect, useMemo, useRef, type ReactNode} from 'react';
import type {AnswerActions, Turn} from '../conversation/model';
import {sayClosest} from '../conversation/outcome';
import {isOpen} from '../conversation/turns';
import {AnswerContext, LinksContext} from './AnswerContext';
import {AnswerText, loadMarkdown} from './AnswerText';
import {CopyAnswer} from './CopyAnswer';
import {Notices, SearchNote} from './Notices';
import {Passages} from './Passages';
import {ProblemNote} from './ProblemNote';
import {Refusal} from './Refusal';
import {Sources} from './Sources';
import {isAboutSelection, isQuoted} from './sortSources';
import {words} from './words';
import styles from './answer.module.css';

interface AnswerViewProps {
  turn: Turn;
  actions: AnswerActions;
}

/** Everything below one question: the answer, its sources, or why there is none. */
export function AnswerView({turn, actions}: AnswerViewProps): ReactNode {
  const value = useMemo(() => ({turn, actions}), [turn, actions]);
  const latest = useRef(value);
  latest.current = value;
  const links = useMemo(() => ({sources: turn.sources, latest}), [turn.sources]);
  const running = isOpen(turn);
  useEffect(() => {
    // While the book is searched. A failure shows when there is something to draw.
    loadMarkdown().catch(() => undefined);
  }, []);
  const finished = turn.status === 'done';
  return (
    <AnswerContext.Provider value={value}>
      <LinksContext.Provider value={links}>
        <div className={styles.answer} data-kind={turn.kind}>
          <SearchNote />
          {running && turn.text === '' && <p className={styles.searching}>{words.searching()}</p>}
          {turn.refusal ? (
            <Refusal refusal={turn.refusal} />
          ) : (
            <Body running={running} turn={turn} />
          )}
          <ProblemNote />
          {!running && !turn.refusal && turn.kind !== 'reply' && <Sources />}
          {!running && !turn.refusal && <Notices />}
          {finished && turn.kind !== 'reply' && <CopyAnswer />}
        </div>
      </LinksContext.Provider>
    </AnswerContext.Provider>
  );
}

function Body({running, turn}: {running: boolean; turn: Turn}): ReactNode {
  return (
    <>
      {turn.level === 'closest_passages' && (
        <p className={styles.closest}>{sayClosest(isAboutSelection(turn))}</p>
      )}
      {isQuoted(turn) ? <Passages /> : <AnswerText streaming={running} text={turn.text} />}
    </>
  );
}
