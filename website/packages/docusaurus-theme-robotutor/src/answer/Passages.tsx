import {useMemo, type ReactNode} from 'react';
import type {Passage} from '../service/protocol';
import {useAnswer} from './AnswerContext';
import {AnswerText} from './AnswerText';
import {chooseQuote, toTextOffsets} from './chooseQuote';
import {CitationLink} from './CitationLink';
import {PlaceLink} from './PlaceLink';
import {isAboutSelection} from './sortSources';
import {sourcesWords} from './words';
import styles from './answer.module.css';

/** An answer in the words of the book: quotations, each with its place. */
export function Passages(): ReactNode {
  const {turn} = useAnswer();
  return (
    <section className={styles.passages}>
      <h3 className={styles.title}>{sourcesWords(isAboutSelection(turn))}</h3>
      {turn.passages.map((passage, at) => (
        <Quotation key={at} passage={passage} />
      ))}
    </section>
  );
}

function Quotation({passage}: {passage: Passage}): ReactNode {
  const {turn} = useAnswer();
  const {citation, number, text} = passage;
  const marks = useMemo(() => toTextOffsets(text, passage.highlights), [text, passage.highlights]);
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
        <CitationLink source={source} />
        <PlaceLink place={citation} quote={chooseQuote(turn, number)} />
      </figcaption>
      <blockquote className={styles.quote}>
        <AnswerText marks={marks} text={text} />
      </blockquote>
    </figure>
  );
}
