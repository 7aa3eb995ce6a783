import {memo, type ReactNode} from 'react';
import {AnswerView} from '../answer/AnswerView';
import {Rating} from '../compose/Rating';
import type {AnswerActions, Turn} from '../conversation/model';
import styles from './Panel.module.css';

interface Props {
  turns: Turn[];
  actions: AnswerActions;
  onRate: (turn: Turn, rating: 'up' | 'down', note?: string) => Promise<boolean>;
}

/** The questions and answers of a conversation, the oldest first. */
export default function TurnList({turns, actions, onRate}: Props): ReactNode {
  return turns.map((turn) => (
    <OneTurn key={turn.id} turn={turn} actions={actions} onRate={onRate} />
  ));
}

/** A turn is drawn again only when it changes: the others stay while one is arriving. */
const OneTurn = memo(function OneTurn({
  turn,
  actions,
  onRate,
}: Omit<Props, 'turns'> & {turn: Turn}): ReactNode {
  return (
    <article className={styles.turn} data-robotutor="turn" data-status={turn.status}>
      <p className={styles.question} dir="auto">
        {turn.asked.question}
      </p>
      <AnswerView turn={turn} actions={actions} />
      <Rating turn={turn} onRate={onRate} />
    </article>
  );
});
