/** The sentences that say how a question ended. The panel shows them, and screen readers say them. */

import {translate} from '@docusaurus/Translate';
import {nameSource} from '../about';
import type {Level, Refusal} from '../service/protocol';
import {sayProblem} from '../service/words';
import type {Asked, Turn} from './model';

/**
 * Returns the sentence for a question without a complete answer.
 *
 * @param name - The name of the panel.
 * @param waitS - The seconds until the next question may be asked.
 * @returns An empty text if the answer is complete or still arriving.
 */
export function sayOutcome(turn: Turn, name: string, waitS: number): string {
  const {asked, status, problem, refusal} = turn;
  switch (status) {
    case 'stopped':
      return translate({id: 'theme.robotutor.outcome.stopped', message: 'Stopped.'});
    case 'cut_off':
      return translate({id: 'theme.robotutor.outcome.cutOff', message: 'The answer was cut off.'});
    case 'failed':
      return sayProblem(problem?.words ?? 'failed', name, waitS);
    case 'refused':
      return refusal ? sayRefusal(refusal, asked) : '';
    default:
      return '';
  }
}

/** The part of the book that a question was asked of. */
export type Part = 'selection' | 'page' | 'module' | 'book';

/** Returns the part of the book that a question was asked of. */
export function findPart({selection, filters}: Asked): Part {
  if (selection) {
    return 'selection';
  }
  return filters?.doc_paths?.length ? 'page' : filters?.modules?.length ? 'module' : 'book';
}

/** How passages of each level are introduced. The caveat is empty if they answer the question. */
const INTRODUCTIONS: Record<Level, {heading: () => string; caveat: (asked: Asked) => string}> = {
  answered: {heading: saySays, caveat: () => ''},
  closest_passages: {
    heading: () => translate({id: 'theme.robotutor.answer.closest', message: 'Closest passages'}),
    caveat: sayClosest,
  },
  not_covered: {heading: saySays, caveat: () => ''},
  no_question: {heading: saySays, caveat: () => ''},
};

/** Returns the heading of an answer's passages, which says how well they answer. */
export const sayHeading = ({asked, level = 'answered'}: Turn): string =>
  asked.selection
    ? translate({id: 'theme.robotutor.answer.selection', message: 'From your selection'})
    : INTRODUCTIONS[level].heading();

/** Returns the sentence above passages that may not fit the question; empty if they answer it. */
export const sayCaveat = ({asked, level = 'answered'}: Turn): string =>
  INTRODUCTIONS[level].caveat(asked);

function saySays(): string {
  return nameSource(translate({id: 'theme.robotutor.answer.says', message: 'The book says'}));
}

function sayClosest(asked: Asked): string {
  switch (findPart(asked)) {
    case 'selection':
      return translate({
        id: 'theme.robotutor.outcome.closestInSelection',
        message: 'Your selection may not answer this. This part of it comes closest.',
      });
    case 'page':
      return translate({
        id: 'theme.robotutor.outcome.closestOnPage',
        message: 'This page does not seem to answer this directly.',
      });
    case 'module':
      return translate({
        id: 'theme.robotutor.outcome.closestInModule',
        message: 'This module does not seem to answer this directly.',
      });
    default:
      return nameSource(
        translate({
          id: 'theme.robotutor.outcome.closest',
          message: 'The book does not seem to answer this directly.',
        }),
      );
  }
}

/** Returns the sentence of a refusal; for a reason of a later version, that of the service. */
export function sayRefusal({reason, message}: Refusal, asked: Asked): string {
  switch (reason) {
    case 'unrelated_to_selection':
      return translate({
        id: 'theme.robotutor.outcome.notInSelection',
        message: 'Your selection does not answer this.',
      });
    case 'selection_without_service':
      return nameSource(
        translate({
          id: 'theme.robotutor.outcome.selectionWithoutService',
          message: 'Here only the whole book can be searched, not a selection.',
        }),
      );
    case 'model_declined':
      return translate({
        id: 'theme.robotutor.outcome.declined',
        message: 'I could not find an answer in these passages.',
      });
    case 'no_passages':
    case 'not_covered':
      return sayNotCovered(asked);
    default:
      return message || sayNotCovered(asked);
  }
}

function sayNotCovered(asked: Asked): string {
  switch (findPart(asked)) {
    case 'page':
      return translate({
        id: 'theme.robotutor.outcome.notOnPage',
        message: 'This page does not cover this.',
      });
    case 'module':
      return translate({
        id: 'theme.robotutor.outcome.notInModule',
        message: 'This module does not cover this.',
      });
    default:
      return nameSource(
        translate({
          id: 'theme.robotutor.outcome.notCovered',
          message: 'The book does not cover this.',
        }),
      );
  }
}

/** Returns the words on a button that tries again what failed. */
export const sayRetry = (): string =>
  translate({id: 'theme.robotutor.outcome.retry', message: 'Try again'});
