import {useEffect, useLayoutEffect, useRef, useState, type RefObject} from 'react';
import type {Turn} from '../conversation/model';

/** Pixels above the end at which a reader still counts as being at the end. */
const NEAR_PX = 40;

/** Pixels that stay free above a question at the top of the list. */
const ABOVE_PX = 16;

/** How a list of turns follows its newest text. */
export interface Follow {
  /** True if newer text is out of sight, and the list does not follow it. */
  behind: boolean;
  /** Scrolls to the end and follows from then on. */
  jump: () => void;
}

/**
 * Keeps the newest text in view until the reader scrolls up.
 *
 * While text arrives, the list follows its end. When the answer is complete, its question stays in
 * view if the list has not moved past it, so that a quotation that arrives at once is read from its
 * start.
 */
export function useFollow(
  list: RefObject<HTMLElement | null>,
  turns: Turn[],
  open: boolean,
): Follow {
  const following = useRef(true);
  const lastTop = useRef(0);
  const [behind, setBehind] = useState(false);
  const last = turns.at(-1);
  const lastId = last?.id;
  const streaming = last?.status === 'streaming';
  const quoted = last?.kind === 'extracted' || last?.status === 'refused';

  const update = useRef(() => {});
  update.current = () => {
    const element = list.current;
    if (!element) {
      return;
    }
    if (following.current) {
      element.scrollTop = chooseTop(element, streaming, quoted);
      lastTop.current = element.scrollTop;
    }
    setBehind(!following.current && !isAtEnd(element));
  };

  // A new question is always shown.
  useLayoutEffect(() => {
    following.current = true;
    update.current();
  }, [lastId]);
  useLayoutEffect(() => update.current(), [turns, open]);

  useEffect(() => {
    const element = list.current;
    if (!element) {
      return undefined;
    }
    const onScroll = (): void => {
      const {scrollTop} = element;
      if (scrollTop < lastTop.current - 1) {
        following.current = false;
      } else if (isAtEnd(element)) {
        following.current = true;
      }
      lastTop.current = scrollTop;
      setBehind(!following.current && !isAtEnd(element));
    };
    // Formulas and code that load later change the height.
    const resized = new ResizeObserver(() => update.current());
    resized.observe(element);
    if (element.firstElementChild) {
      resized.observe(element.firstElementChild);
    }
    element.addEventListener('scroll', onScroll, {passive: true});
    return () => {
      element.removeEventListener('scroll', onScroll);
      resized.disconnect();
    };
  }, [list]);

  const jump = (): void => {
    const element = list.current;
    if (element) {
      following.current = true;
      element.scrollTop = element.scrollHeight;
      lastTop.current = element.scrollTop;
      setBehind(false);
    }
  };
  return {behind, jump};
}

const isAtEnd = (element: HTMLElement): boolean =>
  element.scrollHeight - element.clientHeight - element.scrollTop <= NEAR_PX;

function chooseTop(element: HTMLElement, streaming: boolean, quoted: boolean): number {
  const end = element.scrollHeight - element.clientHeight;
  if (streaming) {
    return end;
  }
  const turn = element.querySelector<HTMLElement>('[data-robotutor="turn"]:last-of-type');
  if (!turn) {
    return 0;
  }
  const above = turn.getBoundingClientRect().top - element.getBoundingClientRect().top - ABOVE_PX;
  const start = Math.min(end, Math.max(0, element.scrollTop + above));
  return quoted ? start : Math.max(element.scrollTop, start);
}
