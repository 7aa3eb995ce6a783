import {useEffect, useLayoutEffect, useRef, useState, type RefObject} from 'react';
import {isOpen} from '../conversation/turns';
import type {Turn} from '../conversation/model';

/** Pixels above the end at which a reader still counts as being at the end. */
const NEAR_PX = 40;

/** Pixels that stay free above a question at the top of the list. */
const ABOVE_PX = 16;

/** What a reader does to read, to choose or to write. */
const TOUCHES = ['wheel', 'touchmove', 'pointerdown', 'click', 'keydown'] as const;

/** How a list of turns follows its newest text. */
export interface Follow {
  /** True if newer text is out of sight, and the list does not follow it. */
  behind: boolean;
  /** Scrolls to the end, and follows an answer that is still arriving. */
  jump: () => void;
}

/**
 * `end`: the end of the arriving text stays in view. `start`: the latest question stays at the top.
 * `free`: only the reader moves the list.
 */
type Hold = 'end' | 'start' | 'free';

/**
 * Keeps the newest text in view while it arrives.
 *
 * A new question stands at the top of the list, and a written answer is followed below it. The list
 * moves no more after the answer has ended, or after the reader has scrolled, clicked or typed.
 */
export function useFollow(list: RefObject<HTMLElement | null>, turns: Turn[]): Follow {
  const hold = useRef<Hold>('start');
  const lastTop = useRef(0);
  // True if the reader left the end of an answer that was still arriving.
  const left = useRef(false);
  const [behind, setBehind] = useState(false);
  const last = turns.at(-1);
  const lastId = last?.id;
  const running = last !== undefined && isOpen(last);
  // Quotations arrive at once and are read from their start.
  const written = last?.model !== undefined && last.status !== 'refused';

  const update = useRef(() => {});
  update.current = () => {
    const element = list.current;
    if (!element) {
      return;
    }
    if (hold.current !== 'free') {
      element.scrollTop = hold.current === 'end' && written ? findEnd(element) : findStart(element);
      lastTop.current = element.scrollTop;
    }
    setBehind(left.current && !isAtEnd(element));
  };

  useLayoutEffect(() => {
    hold.current = running ? 'end' : 'start';
    left.current = false;
    update.current();
    // Only a new question moves the list.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [lastId]);
  useLayoutEffect(() => {
    update.current();
    if (!running && hold.current === 'end') {
      hold.current = written ? 'free' : 'start';
    }
  }, [turns, running, written]);

  const isRunning = useRef(running);
  isRunning.current = running;
  useEffect(() => {
    const element = list.current;
    const panel = element?.closest('[data-robotutor="panel"]') ?? element;
    if (!element || !panel) {
      return undefined;
    }
    const release = (): void => {
      left.current ||= isRunning.current;
      hold.current = 'free';
      setBehind(left.current && !isAtEnd(element));
    };
    const onScroll = (): void => {
      // Some readers scroll by means that no other event tells of.
      if (element.scrollTop < lastTop.current - 1) {
        release();
      }
      lastTop.current = element.scrollTop;
      if (isAtEnd(element)) {
        left.current = false;
      }
      setBehind(left.current && !isAtEnd(element));
    };
    // Formulas and code that load later change the height.
    const resized = new ResizeObserver(() => update.current());
    resized.observe(element);
    if (element.firstElementChild) {
      resized.observe(element.firstElementChild);
    }
    TOUCHES.forEach((type) => panel.addEventListener(type, release, {passive: true}));
    element.addEventListener('scroll', onScroll, {passive: true});
    return () => {
      TOUCHES.forEach((type) => panel.removeEventListener(type, release));
      element.removeEventListener('scroll', onScroll);
      resized.disconnect();
    };
  }, [list]);

  const jump = (): void => {
    const element = list.current;
    if (element) {
      hold.current = running ? 'end' : 'free';
      left.current = false;
      element.scrollTop = element.scrollHeight;
      lastTop.current = element.scrollTop;
      setBehind(false);
    }
  };
  return {behind, jump};
}

const findEnd = (element: HTMLElement): number => element.scrollHeight - element.clientHeight;

const isAtEnd = (element: HTMLElement): boolean => findEnd(element) - element.scrollTop <= NEAR_PX;

/** Returns the scroll position with the latest question at the top; 0 without one. */
function findStart(element: HTMLElement): number {
  const turn = element.querySelector<HTMLElement>('[data-robotutor="turn"]:last-of-type');
  if (!turn) {
    return 0;
  }
  const above = turn.getBoundingClientRect().top - element.getBoundingClientRect().top - ABOVE_PX;
  return Math.min(findEnd(element), Math.max(0, element.scrollTop + above));
}
