import {useMemo, useRef, type ReactNode} from 'react';
import type {AnswerActions, Turn} from '../conversation/model';
import {sayCaveat} from '../conversation/outcome';
import {isOpen} from '../conversation/turns';
import {AnswerContext, LinksContext} from './AnswerContext';
import {AboutSelection, isEcho} from './AboutSelection';
import {AnswerText} from './AnswerText';
import {Notices, SearchNote} from './Notices';
import {Passages} from './Passages';
import {ProblemNote} from './ProblemNote';
import {Refusal} from './Refusal';
import {Sources} from './Sources';
import {isQuoted} from './sortSources';
import {Waiting} from './Waiting';
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
  return (
    <AnswerContext.Provider value={value}>
      <LinksContext.Provider value={links}>
        <div className={styles.answer} data-kind={turn.kind}>
          <SearchNote />
          {running && !isWriting(turn) && <Waiting />}
          {turn.refusal ? (
            <Refusal refusal={turn.refusal} />
          ) : (
            <Body running={running} turn={turn} />
          )}
          {!running && isUnwritten(turn) && <AboutSelection />}
          <ProblemNote />
          {!running && !turn.refusal && turn.kind !== 'reply' && <Sources />}
          {!running && !turn.refusal && <Notices />}
        </div>
      </LinksContext.Provider>
    </AnswerContext.Provider>
  );
}

/** Returns true once a model's text arrives. Quotations are drawn when their places are known. */
const isWriting = (turn: Turn): boolean => turn.model !== undefined && turn.text !== '';

/** Returns true for an answer about selected text that no model wrote. */
const isUnwritten = ({asked, kind, model, status}: Turn): boolean =>
  asked.selection !== undefined &&
  model === undefined &&
  ['done', 'refused'].includes(status) &&
  kind !== 'reply';

function Body({running, turn}: {running: boolean; turn: Turn}): ReactNode {
  if (isQuoted(turn)) {
    return isEcho(turn) ? null : <Passages />;
  }
  if (running && !isWriting(turn)) {
    return null;
  }
  const caveat = sayCaveat(turn);
  return (
    <>
      {caveat && <p className={styles.note}>{caveat}</p>}
      <AnswerText streaming={running} text={turn.text} />
    </>
  );
}
