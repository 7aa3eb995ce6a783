import type {Asked} from '../conversation/model';
import type {Offer} from '../service/protocol';

/** Returns the question that follows from an offer of a refusal. */
export function takeOffer(asked: Asked, offer: Offer): Asked {
  const {question, selection, filters, pageUrl = selection?.url} = asked;
  const wholeBook = {question, ...(pageUrl ? {pageUrl} : {})};
  switch (offer) {
    case 'answer_anyway':
      return {...asked, evenIfUnrelated: true};
    case 'whole_book':
      return wholeBook;
    case 'drop_filters':
      return selection ? {question, selection} : wholeBook;
    default:
      return {question, selection, filters}; // an offer of a later version
  }
}
