import type {ReactNode} from 'react';
import {readAddress} from '../addresses';
import type {Citation} from '../service/protocol';
import {useAnswer} from './AnswerContext';
import {followLink} from './links';
import styles from './answer.module.css';

/** Returns the page and the section of a citation, in the order of the book. */
export function namePlace({section, title}: Pick<Citation, 'section' | 'title'>): string {
  return section && title && section !== title ? `${title} › ${section}` : title || section;
}

interface PlaceLinkProps {
  place: Citation;
  /** The text to highlight after the jump; empty for only the place. */
  quote?: string;
}

/** The page and the section of a citation, as a link if its address is known. */
export function PlaceLink({place, quote = ''}: PlaceLinkProps): ReactNode {
  const {actions} = useAnswer();
  const address = place.url ? readAddress(place.url, window.location.origin) : null;
  const name = namePlace(place);
  if (!address?.internal) {
    return <span className={styles.place}>{name}</span>;
  }
  return (
    <a
      className={styles.place}
      dir="auto"
      href={address.href}
      {...followLink(actions.onJump, () => ({url: address.href, text: quote}))}>
      {name}
    </a>
  );
}
