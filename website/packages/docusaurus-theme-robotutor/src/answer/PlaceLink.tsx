import type {ReactNode} from 'react';
import {readAddress} from '../addresses';
import type {Citation} from '../service/protocol';
import {useAnswer} from './AnswerContext';
import {followLink} from './links';
import styles from './answer.module.css';

type Named = Pick<Citation, 'section' | 'title' | 'version' | 'locale'>;

/** Returns the page and the section of a citation, and a version or language that is not usual. */
export function namePlace({section, title, version, locale}: Named): string {
  const place = section && title && section !== title ? `${title} › ${section}` : title || section;
  const edition = [version, locale].filter(Boolean).join(', ');
  return edition ? `${place} (${edition})` : place;
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
  const whole = namePlace(place);
  const page = whole.startsWith(`${place.title} › `) ? place.title : '';
  const name = (
    <>
      {page && <span>{page}</span>}
      <span>{whole.slice(page.length)}</span>
    </>
  );
  if (!address?.internal) {
    return <span className={styles.place}>{name}</span>;
  }
  return (
    <a
      className={styles.place}
      dir="auto"
      href={address.href}
      {...followLink(actions.onJump, () => ({url: address.href, text: quote, tabs: place.tabs}))}>
      {name}
    </a>
  );
}
