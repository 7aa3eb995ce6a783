import {useCallback, useEffect, useRef, useState} from 'react';
import {readPlainText, shorten} from '../answer/plainText';
import type {Turn} from '../conversation/model';
import {sayCaveat, sayOutcome} from '../conversation/outcome';
import {isOpen} from '../conversation/turns';
import {words} from './words';

// Numbers of sources, which would be read in the middle of sentences.
const CITATIONS = /[ \t]*\[\d+(?:,\s*\d+)*\](?!\()/g;

/** Characters of an answer that are announced. A longer one is read in the panel. */
const SPOKEN_LENGTH = 1000;

/** Something that a screen reader says. A new `id` makes it say the same words again. */
export interface Said {
  id: number;
  text: string;
  /** True if the panel was open. A closed panel is silent, so the words are said outside of it. */
  inPanel: boolean;
}

/** Returns the words of a screen reader about an answer; empty if the reader knows the outcome. */
export function describeOutcome(turn: Turn, name: string): string {
  switch (turn.status) {
    case 'done':
      return (
        sayCaveat(turn) ||
        shorten(readPlainText(turn.text.replace(CITATIONS, '')), SPOKEN_LENGTH) ||
        words.answered()
      );
    case 'stopped':
      return ''; // the reader stopped it
    default:
      return sayOutcome(turn, name, turn.problem?.retryAfterS ?? 0);
  }
}

/**
 * Returns what a screen reader says now, and a function that says something else.
 *
 * An answer is announced once, when it ends. Answers from before a reload are not announced.
 */
export function useAnnouncement(
  turns: Turn[],
  name: string,
  open: boolean,
): [Said | null, (text: string) => void] {
  const [said, setSaid] = useState<Said | null>(null);
  const [known] = useState(() => new Set<string>(turns.filter(hasEnded).map(({id}) => id)));
  const inPanel = useRef(open);
  inPanel.current = open;
  const say = useCallback((text: string): void => {
    if (text) {
      setSaid((before) => ({id: (before?.id ?? 0) + 1, text, inPanel: inPanel.current}));
    }
  }, []);
  useEffect(() => {
    for (const turn of turns) {
      if (hasEnded(turn) && !known.has(turn.id)) {
        known.add(turn.id);
        say(describeOutcome(turn, name));
      }
    }
  }, [turns, name, known, say]);
  return [said, say];
}

const hasEnded = (turn: Turn): boolean => !isOpen(turn);
