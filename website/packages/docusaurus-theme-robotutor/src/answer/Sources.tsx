import {useState, type ReactNode} from 'react';
import {sayCaveat, sayHeading} from '../conversation/outcome';
import type {Source} from '../service/protocol';
import {useAnswer} from './AnswerContext';
import {AnswerText} from './AnswerText';
import {chooseQuote} from './chooseQuote';
import {CitationLink} from './CitationLink';
import {PlaceLink} from './PlaceLink';
import {excerptOf} from './excerpt';
import {dropHeading} from './plainText';
import {showNumber, sortSources} from './sortSources';
import {Toggle} from './Toggle';
import {words} from './words';
import styles from './answer.module.css';

/** About three lines of the panel. */
const EXCERPT_LENGTH = 160;

/** The sources of an answer: those that it cites, and those that are only near. */
export function Sources(): ReactNode {
  const {turn} = useAnswer();
  const {cited, near} = sortSources(turn);
  return (
    <>
      {cited.length > 0 && (
        <section>
          {!sayCaveat(turn) && (
            <h3 className={styles.title}>
              {turn.asked.selection ? sayHeading(turn) : words.sources()}
            </h3>
          )}
          <SourceList sources={cited} />
        </section>
      )}
      {near.length > 0 && (
        <details className={styles.near}>
          <summary>{words.near()}</summary>
          <SourceList sources={near} />
        </details>
      )}
    </>
  );
}

function SourceList({sources}: {sources: Source[]}): ReactNode {
  return (
    <ol className={styles.sources}>
      {sources.map((source) => (
        <SourceItem key={source.number} source={source} />
      ))}
    </ol>
  );
}

function SourceItem({source}: {source: Source}): ReactNode {
  const {turn} = useAnswer();
  const [open, setOpen] = useState(false);
  const text = dropHeading(source.text);
  const isLong = excerptOf(text, EXCERPT_LENGTH) !== text.trim();
  const sentence = turn.sentences.find(({cited}) => cited.includes(source.number))?.text;
  return (
    <li className={styles.source}>
      <div className={styles.caption}>
        <CitationLink
          sentence={sentence}
          shown={showNumber(turn, source.number)}
          source={source}
          withPreview={false}
        />
        <PlaceLink place={source} quote={chooseQuote(turn, source.number, sentence)} />
      </div>
      <div className={styles.excerpt}>
        <AnswerText text={open ? text : excerptOf(text, EXCERPT_LENGTH)} />
      </div>
      {isLong && <Toggle open={open} onToggle={setOpen} />}
    </li>
  );
}
