import {useMemo, useState, type ReactNode} from 'react';
import {AskButton} from '../compose/AskButton';
import {findPart, sayCaveat, sayHeading} from '../conversation/outcome';
import type {Passage} from '../service/protocol';
import {useAnswer} from './AnswerContext';
import {AnswerText} from './AnswerText';
import {Capped} from './Capped';
import {chooseQuote, readHighlights, toTextOffsets} from './chooseQuote';
import {CitationLink} from './CitationLink';
import {LEADING} from './Notices';
import {Figures} from './Figures';
import {PlaceLink} from './PlaceLink';
import {excerptOf} from './excerpt';
import {showNumber} from './sortSources';
import {Toggle} from './Toggle';
import {words} from './words';
import styles from './answer.module.css';

/** Characters of the marked sentences of a passage that is folded: about three lines of the panel. */
const FOLDED_LENGTH = 180;

/** A label at the start of a paragraph, such as `**Numbers.**`, which says nothing alone. */
const LABEL = /^(\*\*|__)[^*_\n]+\1$/;

/**
 * An answer in the words of the book: quotations, each with its place.
 *
 * The best passage is complete, unless it fills the list. Of the others, the marked sentences are visible.
 */
export function Passages(): ReactNode {
  const {actions, turn} = useAnswer();
  const caveat = sayCaveat(turn);
  const part = findPart(turn.asked);
  const reason = turn.notices.find(({code}) => LEADING.has(code));
  return (
    <section className={styles.passages}>
      {reason && (
        <p className={styles.note} data-notice={reason.code} dir="auto">
          {reason.text}
        </p>
      )}
      <h3 className={styles.title}>{sayHeading(turn)}</h3>
      {caveat && <p className={styles.note}>{caveat}</p>}
      {groupBySource(turn.passages).map((passages, at) => (
        <Quotation key={at} folds={at > 0} passages={passages} />
      ))}
      {caveat && (part === 'page' || part === 'module') && (
        <AskButton
          className={styles.action}
          onAsk={() => actions.onOffer(turn, 'drop_filters')}>
          {words.wholeBook()}
        </AskButton>
      )}
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

interface QuotationProps {
  passages: [Passage, ...Passage[]];
  /** True to show only the marked sentences at first. */
  folds: boolean;
}

function Quotation({passages, folds}: QuotationProps): ReactNode {
  const {turn} = useAnswer();
  const [open, setOpen] = useState(false);
  const {citation, number, text} = passages[0];
  const source = turn.sources.find((each) => each.number === number) ?? {
    ...citation,
    number,
    text,
    chunk_id: '',
    content_type: '',
  };
  const folded = folds ? foldPassages(passages) : null;
  const quotes = passages.map((passage, at) => <Quote key={at} passage={passage} />);
  return (
    <figure className={styles.quotation} data-folded={(folded !== null && !open) || undefined}>
      <figcaption className={styles.caption}>
        <CitationLink shown={showNumber(turn, number)} source={source} withPreview={false} />
        <PlaceLink place={citation} quote={chooseQuote(turn, number)} />
        {folded !== null && <Toggle isFold open={open} onToggle={setOpen} />}
      </figcaption>
      {folded !== null && !open ? (
        <blockquote className={styles.quote} dir="auto">
          <div className={styles.folded}>
            <AnswerText text={folded} />
          </div>
        </blockquote>
      ) : folds ? (
        quotes
      ) : (
        <Capped>{quotes}</Capped>
      )}
    </figure>
  );
}

/**
 * Returns the marked sentences of passages as short Markdown, or null if nothing would be saved.
 */
function foldPassages(passages: Passage[]): string | null {
  const marked = passages.map(readHighlights).join('\n\n');
  const whole = passages.map(({text}) => text.trim()).join('\n\n');
  if (whole.length <= FOLDED_LENGTH) {
    return null;
  }
  if (LABEL.test(marked)) {
    return excerptOf(whole.slice(whole.indexOf(marked)), FOLDED_LENGTH);
  }
  return marked !== whole && marked.length <= 2 * FOLDED_LENGTH && !/\n/.test(marked)
    ? marked
    : excerptOf(marked, FOLDED_LENGTH);
}

function Quote({passage}: {passage: Passage}): ReactNode {
  const {text, highlights} = passage;
  const marks = useMemo(() => toTextOffsets(text, highlights), [text, highlights]);
  return (
    <blockquote className={styles.quote} dir="auto">
      <AnswerText marks={marks} text={text} />
      <Figures passage={passage} />
    </blockquote>
  );
}
