import type {ReactNode} from 'react';
import {useLayoutEffect, useRef, useState} from 'react';
import {createPortal} from 'react-dom';

import {findFixedNavbar} from '../article';
import type {Selection} from '../conversation/model';
import type {Place} from './place';
import {placeControl} from './place';
import {currentSelection} from './readSelection';
import {useSelectedLines} from './useSelectedLines';
import {askAboutThis} from './words';
import styles from './AskAboutThis.module.css';

/** A small button next to text that the reader selects in the article. */
export function AskAboutThis({onAsk}: {onAsk: (selection: Selection) => void}): ReactNode {
  const [lines, forget] = useSelectedLines();
  const pressed = useRef<Selection | null>(null);
  const button = useRef<HTMLButtonElement>(null);
  const [place, setPlace] = useState<Place | null>(null);
  useLayoutEffect(() => {
    if (!lines || !button.current) {
      setPlace(null);
      return;
    }
    const {offsetWidth: width, offsetHeight: height} = button.current;
    const view = {
      top: Math.max(0, findFixedNavbar()?.getBoundingClientRect().bottom ?? 0),
      bottom: window.innerHeight,
      width: document.documentElement.clientWidth,
    };
    setPlace(placeControl(lines.first, lines.last, {width, height}, view, lines.isTouch));
  }, [lines]);
  if (!lines) return null;
  const ask = (): void => {
    const selection = currentSelection(window.location.pathname) ?? pressed.current;
    forget();
    if (selection) onAsk(selection);
  };
  return createPortal(
    <button
      ref={button}
      type="button"
      className={styles.askAboutThis}
      data-robotutor="ask-about-this"
      data-placed={place !== null}
      style={{insetBlockStart: place?.y ?? 0, left: place?.x ?? 0}}
      // A press would otherwise end the selection that it is about.
      onPointerDown={(event) => {
        event.preventDefault();
        pressed.current = currentSelection(window.location.pathname);
      }}
      onMouseDown={(event) => event.preventDefault()}
      onClick={ask}>
      {askAboutThis()}
    </button>,
    document.body,
  );
}
