import {useEffect, useRef, useState} from 'react';
import {readPlainText, shorten} from '../answer/plainText';
import type {Turn} from '../conversation/model';
import {words} from './words';

// Numbers of sources, which would be read in the middle of sentences.
const CITATIONS = /[ \t]*\[\d+(?:,\s*\d+)*\](?!\()/g;

/** Characters of an answer that are announced. A longer one is read in the panel. */
const SPOKEN_LENGTH = 1000;

/** Returns what a screen reader says about an answer; empty while it is arriving. */
export function describeOutcome(turn: Turn): string {
  switch (turn.status) {
    case 'done':
      return turn.level === 'closest_passages'
        ? words.closest()
        : shorten(readPlainText(turn.text.replace(CITATIONS, '')), SPOKEN_LENGTH) ||
            words.answered();
    case 'refused':
      return turn.refusal?.message || words.notCovered();
    case 'cut_off':
      return words.cutOff();
    case 'failed':
      return turn.problem?.message || words.failed();
    default:
      return ''; // the reader stopped it, or it is arriving
  }
}

/**
 * Returns the text of the live region and a function that says something else.
 *
 * An answer is announced once, when it ends. Answers from before a reload are not announced.
 */
export function useAnnouncement(turns: Turn[]): [string, (text: string) => void] {
  const [text, setText] = useState('');
  const last = turns.at(-1);
  const arriving = useRef<string | null>(null);
  useEffect(() => {
    if (!last) {
      arriving.current = null;
      return;
    }
    if (last.status === 'searching' || last.status === 'streaming') {
      if (arriving.current !== last.id) {
        arriving.current = last.id;
        setText(''); // so that the same words are said again
      }
    } else if (arriving.current === last.id) {
      arriving.current = null;
      setText(describeOutcome(last));
    }
  }, [last]);
  return [text, setText];
}
