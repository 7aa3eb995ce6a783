import {useCallback, useEffect, useRef, useState} from 'react';

import {hasSelectedText} from './readSelection';

/** The first and the last line of what the reader has selected in the article. */
export interface SelectedLines {
  first: DOMRect;
  last: DOMRect;
  /** True if the reader selected with a finger. */
  isTouch: boolean;
}

// A finger moves the handles of a selection without any other event.
const TOUCH_DELAY_MS = 350;
const KEY_DELAY_MS = 150;

function readLines(isTouch: boolean): SelectedLines | null {
  const selection = window.getSelection();
  if (!selection || selection.isCollapsed || !hasSelectedText(selection)) return null;
  const range = selection.getRangeAt(0);
  const lines = Array.from(range.getClientRects()).filter(({width, height}) => width > 1 && height > 1);
  const first = lines[0] ?? range.getBoundingClientRect();
  return {first, last: lines.at(-1) ?? first, isTouch};
}

/**
 * Returns the lines that are selected in the article, or `null`, and a function that forgets them.
 *
 * While the reader drags, nothing is selected. Escape forgets the lines until the selection changes.
 */
export function useSelectedLines(): [lines: SelectedLines | null, forget: () => void] {
  const [lines, setLines] = useState<SelectedLines | null>(null);
  const isForgotten = useRef(false);
  const forget = useCallback(() => {
    isForgotten.current = true;
    setLines(null);
  }, []);
  useEffect(() => {
    let isTouch = false;
    let isPressed = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let frame = 0;
    const read = (): void => setLines(isPressed || isForgotten.current ? null : readLines(isTouch));
    const readLater = (): void => {
      clearTimeout(timer);
      timer = setTimeout(read, isTouch ? TOUCH_DELAY_MS : KEY_DELAY_MS);
    };
    const press = (event: PointerEvent): void => {
      isTouch = event.pointerType === 'touch';
      // A finger that presses long selects a word, and no other event says when it is done.
      isPressed = !isTouch;
    };
    const release = (): void => {
      isPressed = false;
      readLater();
    };
    const change = (): void => {
      isForgotten.current = false;
      // Some phones end the selection before they report the tap on the control.
      readLater();
    };
    const type = (event: KeyboardEvent): void => {
      if (event.key === 'Escape') forget();
    };
    const move = (): void => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => setLines((shown) => shown && readLines(isTouch)));
    };
    document.addEventListener('selectionchange', change);
    document.addEventListener('pointerdown', press, true);
    document.addEventListener('pointerup', release, true);
    document.addEventListener('pointercancel', release, true);
    document.addEventListener('keydown', type);
    document.addEventListener('scroll', move, {capture: true, passive: true});
    window.addEventListener('resize', move);
    return () => {
      clearTimeout(timer);
      cancelAnimationFrame(frame);
      document.removeEventListener('selectionchange', change);
      document.removeEventListener('pointerdown', press, true);
      document.removeEventListener('pointerup', release, true);
      document.removeEventListener('pointercancel', release, true);
      document.removeEventListener('keydown', type);
      document.removeEventListener('scroll', move, {capture: true});
      window.removeEventListener('resize', move);
    };
  }, [forget]);
  return [lines, forget];
}
