import {memo, type ReactNode} from 'react';
import {AnswerTools} from '../answer/AnswerTools';
import {Unlinked} from '../answer/AnswerContext';
import {AnswerText} from '../answer/AnswerText';
import {AnswerView} from '../answer/AnswerView';
import {Rating} from '../compose/Rating';
import type {AnswerActions, Turn} from '../conversation/model';
import {FollowUps} from './FollowUps';
import styles from './Panel.module.css';

interface Props {
  turns: Turn[];
  actions: AnswerActions;
  onRate: (turn: Turn, rating: 'up' | 'down', note?: string) => Promise<boolean>;
}

/** The questions and answers of a conversation, the oldest first. */
export default function TurnList({turns, actions, onRate}: Props): ReactNode {
  return turns.map((turn, at) => (
    <OneTurn
      key={turn.id}
      turn={turn}
      isLast={at === turns.length - 1}
      actions={actions}
      onRate={onRate}
    />
  ));
}

/** A turn is drawn again only when it changes: the others stay while one is arriving. */
const OneTurn = memo(function OneTurn({
  turn,
  isLast,
  actions,
  onRate,
}: Omit<Props, 'turns'> & {turn: Turn; isLast: boolean}): ReactNode {
  return (
    <article className={styles.turn} data-robotutor="turn" data-status={turn.status}>
      <div className={styles.question}>
        {turn.asked.selection && <AskedAbout text={turn.asked.selection.text} />}
        <p dir="auto">{turn.asked.question}</p>
      </div>
      <AnswerView turn={turn} actions={actions} />
      <Rating turn={turn} onRate={onRate}>
        <AnswerTools turn={turn} />
      </Rating>
      {isLast && turn.status === 'done' && <FollowUps turn={turn} onAsk={actions.onAsk} />}
    </article>
  );
});

/** Characters of a selection that are drawn. The rest would be out of sight. */
const MAX_SHOWN = 1500;

/** The selected text that a question is about, as it looks in the page. */
function AskedAbout({text}: {text: string}): ReactNode {
  return (
    <blockquote className={styles.about}>
      <Unlinked>
        <AnswerText text={text.slice(0, MAX_SHOWN)} />
      </Unlinked>
    </blockquote>
  );
}
