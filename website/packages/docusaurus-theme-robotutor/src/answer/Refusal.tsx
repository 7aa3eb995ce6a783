import type {ReactNode} from 'react';
import type {Offer, Refusal as RefusalData} from '../service/protocol';
import {useAnswer} from './AnswerContext';
import {Notices} from './Notices';
import {PlaceLink} from './PlaceLink';
import {words} from './words';
import styles from './answer.module.css';

const MESSAGES: Record<string, () => string> = {
  no_passages: words.notCovered,
  not_covered: words.notCovered,
  unrelated_to_selection: words.notInSelection,
  model_declined: words.declined,
};

const OFFERS: Record<Offer, () => string> = {
  answer_anyway: words.answerAnyway,
  whole_book: words.wholeBook,
  drop_filters: words.dropFilters,
};

/** Why a question has no answer from the book, sections that may help, and what to do next. */
export function Refusal({refusal}: {refusal: RefusalData}): ReactNode {
  const {actions, turn} = useAnswer();
  const own = Object.hasOwn(MESSAGES, refusal.reason) ? MESSAGES[refusal.reason] : undefined;
  const offers = refusal.offers.filter((offer) => Object.hasOwn(OFFERS, offer));
  return (
    <div className={styles.refusal} data-reason={refusal.reason}>
      <p dir="auto">{own?.() ?? refusal.message}</p>
      <Notices />
      {refusal.related.length > 0 && (
        <>
          <h3 className={styles.title}>{words.related()}</h3>
          <ul className={styles.related}>
            {refusal.related.map((place, at) => (
              <li key={at}>
                <PlaceLink place={place} />
              </li>
            ))}
          </ul>
        </>
      )}
      {offers.length > 0 && (
        <div className={styles.offers}>
          {offers.map((offer) => (
            <button
              key={offer}
              className={styles.action}
              type="button"
              onClick={() => actions.onOffer(turn, offer)}>
              {OFFERS[offer]()}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
