import {
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
  type PointerEvent,
  type ReactNode,
} from 'react';
import {readAddress} from '../addresses';
import type {Source} from '../service/protocol';
import {useLinks} from './AnswerContext';
import {chooseQuote} from './chooseQuote';
import {followLink} from './links';
import {namePlace} from './PlaceLink';
import {dropHeading, readPlainText, shorten} from './plainText';
import {citationWords} from './words';
import styles from './answer.module.css';

const PREVIEW_LENGTH = 220;
const CLOSE_DELAY_MS = 120;

interface CitationLinkProps {
  source: Source;
  /** The number that is shown, if it is not that of the source. */
  shown?: number;
  /** The sentence that cites the source, if it is known. */
  sentence?: string;
  /** False where the cited text is next to the number. */
  withPreview?: boolean;
}

/** The number of a source. It leads to the cited text and shows a preview of it. */
export function CitationLink(props: CitationLinkProps): ReactNode {
  const {source, shown = source.number, sentence, withPreview = true} = props;
  const {latest} = useLinks();
  const id = useId();
  const preview = usePreview();
  const address = source.url ? readAddress(source.url, window.location.origin) : null;
  const place = namePlace(source);
  const isOpen = withPreview && preview.open;
  const shared = {
    className: styles.citation,
    'aria-label': citationWords(shown, place),
    'aria-describedby': isOpen ? id : undefined,
    onFocus: preview.onFocus,
    onBlur: preview.close,
  };
  return (
    <span
      className={styles.citationBox}
      onPointerEnter={preview.onEnter}
      onPointerLeave={preview.onLeave}>
      {address?.internal ? (
        <a
          {...shared}
          data-robotutor="citation"
          href={address.href}
          {...followLink(
            (target, byKeyboard) => {
              preview.close();
              latest.current.actions.onJump(target, byKeyboard);
            },
            () => ({
              url: address.href,
              text: chooseQuote(latest.current.turn, source.number, sentence),
              tabs: source.tabs,
            }),
          )}>
          {shown}
        </a>
      ) : (
        <span {...shared} role="note" tabIndex={0}>
          {shown}
        </span>
      )}
      {isOpen && <Preview id={id} place={place} text={source.text} />}
    </span>
  );
}

/** Opens a preview for the mouse and for the keyboard. A tap only follows the link. */
function usePreview() {
  const [open, setOpen] = useState(false);
  const timer = useRef<number | undefined>(undefined);
  useEffect(() => {
    if (!open) {
      return undefined;
    }
    // On the window and before others, so that Escape closes the preview and not the panel.
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.key === 'Escape') {
        event.stopPropagation();
        setOpen(false);
      }
    };
    window.addEventListener('keydown', onKeyDown, true);
    return () => window.removeEventListener('keydown', onKeyDown, true);
  }, [open]);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  return {
    open,
    close: () => setOpen(false),
    onFocus: (event: {target: Element}) => {
      setOpen(isFocusVisible(event.target));
    },
    onEnter: (event: PointerEvent) => {
      window.clearTimeout(timer.current);
      if (event.pointerType === 'mouse') {
        setOpen(true);
      }
    },
    onLeave: () => {
      // The delay lets the pointer cross the gap to the preview.
      timer.current = window.setTimeout(() => setOpen(false), CLOSE_DELAY_MS);
    },
  };
}

function isFocusVisible(element: Element): boolean {
  try {
    return element.matches(':focus-visible');
  } catch {
    return true;
  }
}

interface PreviewProps {
  id: string;
  place: string;
  text: string;
}

function Preview({id, place, text}: PreviewProps): ReactNode {
  const box = useRef<HTMLSpanElement>(null);
  const [above, setAbove] = useState(false);
  useLayoutEffect(() => {
    if (box.current) {
      const room = findScrollBox(box.current)?.getBoundingClientRect().bottom ?? window.innerHeight;
      setAbove(box.current.getBoundingClientRect().bottom > Math.min(room, window.innerHeight));
    }
  }, []);
  return (
    <span
      ref={box}
      id={id}
      className={styles.preview}
      data-above={above || undefined}
      data-robotutor="preview"
      dir="auto"
      role="tooltip">
      <strong className={styles.previewPlace}>{place}</strong>
      {shorten(readPlainText(dropHeading(text).slice(0, 4 * PREVIEW_LENGTH)), PREVIEW_LENGTH)}
    </span>
  );
}

function findScrollBox(element: Element): Element | null {
  for (let box = element.parentElement; box; box = box.parentElement) {
    if (box !== document.body && /auto|scroll/.test(getComputedStyle(box).overflowY)) {
      return box;
    }
  }
  return null;
}
