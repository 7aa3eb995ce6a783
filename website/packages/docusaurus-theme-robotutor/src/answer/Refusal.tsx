import type {ReactNode} from 'react';
import {AskButton} from '../compose/AskButton';
import {findPart, sayRefusal} from '../conversation/outcome';
import type {Offer, Refusal as RefusalData} from '../service/protocol';
import {useAnswer} from './AnswerContext';
import {Notices} from './Notices';
import {PlaceLink} from './PlaceLink';
import {WaysOn} from './WaysOn';
import {words} from './words';
import styles from './answer.module.css';

const OFFERS: Record<Offer, () => string> = {
  answer_anyway: words.answerAnyway,
  whole_book: words.wholeBook,
  drop_filters: words.wholeBook,
};

/** The reason why the book does not answer, sections that may help, and what to do next. */
export function Refusal({refusal}: {refusal: RefusalData}): ReactNode {
  const {actions, turn} = useAnswer();
  const part = findPart(turn.asked);
  const known = refusal.offers.filter((offer) => Object.hasOwn(OFFERS, offer));
  const isNarrow = part === 'page' || part === 'module';
  const offers: Offer[] = isNarrow && known.length === 0 ? ['drop_filters'] : known;
  return (
    <div className={styles.refusal} data-reason={refusal.reason}>
      <p dir="auto">{sayRefusal(refusal, turn.asked)}</p>
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
            <AskButton
              key={offer}
              className={styles.action}
              onAsk={() => actions.onOffer(turn, offer)}>
              {OFFERS[offer]()}
            </AskButton>
          ))}
        </div>
      )}
      <WaysOn />
    </div>
  );
}
