import {useMemo, type ReactNode} from 'react';
import type {Passage} from '../service/protocol';
import {useAnswer} from './AnswerContext';
import {AnswerText} from './AnswerText';
import {chooseQuote, toTextOffsets} from './chooseQuote';
import {CitationLink} from './CitationLink';
import {LEADING} from './Notices';
import {PlaceLink} from './PlaceLink';
import {isAboutSelection, showNumber} from './sortSources';
import {sourcesWords} from './words';
import styles from './answer.module.css';

/** An answer in the words of the book: quotations, each with its place. */
export function Passages(): ReactNode {
  const {turn} = useAnswer();
  const reason = turn.notices.find(({code}) => LEADING.has(code));
  return (
    <section className={styles.passages}>
      {reason && (
        <p className={styles.note} data-notice={reason.code} dir="auto">
          {reason.text}
        </p>
      )}
      {/* Above the closest passages, a sentence says that the book may not say this. */}
      {turn.level !== 'closest_passages' && (
        <h3 className={styles.title}>{sourcesWords(isAboutSelection(turn))}</h3>
      )}
      {groupBySource(turn.passages).map((passages, at) => (
        <Quotation key={at} passages={passages} />
      ))}
    </section>
  );
}

/** Joins neighbors of the same source, so that its place is named once. */
function groupBySource(passages: Passage[]): [Passage, ...Passage[]][] {
  const groups: [Passage, ...Passage[]][] = [];
  for (const passage of passages) {
    const last = groups.at(-1);
    if (last?.[0].number === passage.number) {
      last.push(passage);
    } else {
      groups.push([passage]);
    }
  }
  return groups;
}

function Quotation({passages}: {passages: [Passage, ...Passage[]]}): ReactNode {
  const {turn} = useAnswer();
  const {citation, number, text} = passages[0];
  const source = turn.sources.find((each) => each.number === number) ?? {
    ...citation,
    number,
    text,
    chunk_id: '',
    content_type: '',
  };
  return (
    <figure className={styles.quotation}>
      <figcaption className={styles.caption}>
        <CitationLink shown={showNumber(turn, number)} source={source} withPreview={false} />
        <PlaceLink place={citation} quote={chooseQuote(turn, number)} />
      </figcaption>
      {passages.map((passage, at) => (
        <Quote key={at} passage={passage} />
      ))}
    </figure>
  );
}

function Quote({passage: {text, highlights}}: {passage: Passage}): ReactNode {
  const marks = useMemo(() => toTextOffsets(text, highlights), [text, highlights]);
  return (
    <blockquote className={styles.quote} dir="auto">
      <AnswerText marks={marks} text={text} />
    </blockquote>
  );
}
