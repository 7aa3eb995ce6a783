import {useEffect, useState, type ReactNode} from 'react';
import {AskButton} from '../compose/AskButton';
import type {Turn} from '../conversation/model';
import {fetchEntries, fetchSection, type SectionText} from '../service/requests';
import {useSiteSettings} from '../settings';
import {useAnswer} from './AnswerContext';
import {AnswerText} from './AnswerText';
import {excerptOf} from './excerpt';
import {PlaceLink} from './PlaceLink';
import {dropHeading} from './plainText';
import {Toggle} from './Toggle';
import {words} from './words';
import styles from './answer.module.css';

/** Characters of a section or an entry that are visible at first: about four lines of the panel. */
const SHOWN_LENGTH = 260;

/** The share of a selection from which quotations only repeat it. */
const ECHO_SHARE = 0.8;

/** Returns true if the quotations of an answer repeat the selected text that it is about. */
export function isEcho({asked, passages}: Turn): boolean {
  const count = (text: string): number => text.match(/[\p{L}\p{N}]/gu)?.length ?? 0;
  const quoted = passages.reduce((sum, {text}) => sum + count(text), 0);
  return asked.selection !== undefined && quoted >= ECHO_SHARE * count(asked.selection.text);
}

/**
 * What the book says around selected text, for an answer that no model wrote: the section of the
 * selection, the glossary's entries for its terms and symbols, and the whole book.
 */
export function AboutSelection(): ReactNode {
  const {actions, turn} = useAnswer();
  const {section, entries} = useSurroundings(turn);
  return (
    <section className={styles.about} data-robotutor="about-selection">
      {section && (
        <>
          <h3 className={styles.title}>{words.surrounding()}</h3>
          <Excerpt known={turn.asked.selection?.text} section={section} />
        </>
      )}
      {entries.length > 0 && (
        <>
          <h3 className={styles.title}>{words.terms()}</h3>
          {entries.map((entry) => (
            <Excerpt key={entry.url} section={entry} />
          ))}
        </>
      )}
      {!turn.refusal && (
        <AskButton className={styles.action} onAsk={() => actions.onOffer(turn, 'whole_book')}>
          {words.wholeBook()}
        </AskButton>
      )}
    </section>
  );
}

/** Returns the text after a selection, or before it if it is at the end; all if it is not in it. */
export function readAround(text: string, selected: string): string {
  const at = text.indexOf(selected.trim());
  if (at < 0) return text;
  return dropHeading(text.slice(at + selected.trim().length)) || text.slice(0, at).trim();
}

interface ExcerptProps {
  section: SectionText;
  /** Text that the reader knows already. */
  known?: string;
}

function Excerpt({section, known = ''}: ExcerptProps): ReactNode {
  const [open, setOpen] = useState(false);
  const text = dropHeading(section.text);
  const excerpt = excerptOf(known ? readAround(text, known) : text, SHOWN_LENGTH);
  return (
    <div className={styles.source}>
      <div className={styles.caption}>
        <PlaceLink place={section} />
        {excerpt && excerpt !== text && <Toggle isFold open={open} onToggle={setOpen} />}
      </div>
      {excerpt && (
        <div className={styles.excerpt}>
          <AnswerText text={open ? text : excerpt} />
        </div>
      )}
    </div>
  );
}

/** Returns what the book says around a selection. An answer is readable without it. */
function useSurroundings({asked}: Turn): {section: SectionText | null; entries: SectionText[]} {
  const settings = useSiteSettings();
  const {text = '', url = ''} = asked.selection ?? {};
  const [section, setSection] = useState<SectionText | null>(null);
  const [entries, setEntries] = useState<SectionText[]>([]);
  useEffect(() => {
    let isCurrent = true;
    fetchSection(settings, url).then(
      (found) => isCurrent && setSection(found),
      () => undefined,
    );
    fetchEntries(settings, text).then(
      (found) => isCurrent && setEntries(found),
      () => undefined,
    );
    return () => {
      isCurrent = false;
    };
  }, [settings, text, url]);
  return {section, entries};
}
