import type {Asked} from '../conversation/model';
import type {Offer} from '../service/protocol';

/** Returns the question that follows from an offer of a refusal. */
export function takeOffer(asked: Asked, offer: Offer): Asked {
  const {question, selection, filters} = asked;
  switch (offer) {
    case 'answer_anyway':
      return {...asked, evenIfUnrelated: true};
    case 'whole_book':
      return {question};
    case 'drop_filters':
      return selection ? {question, selection} : {question};
    default:
      return {question, selection, filters}; // an offer of a later version
  }
}
