/** The sentences that say how a question ended. The panel shows them, and screen readers say them. */

import {translate} from '@docusaurus/Translate';
import type {Refusal} from '../service/protocol';
import {sayProblem} from '../service/words';
import type {Turn} from './model';

/**
 * Returns the sentence for a question without a complete answer.
 *
 * @param name - The name of the panel.
 * @param waitS - The seconds until the next question may be asked.
 * @returns An empty text if the answer is complete or still arriving.
 */
export function sayOutcome({status, problem, refusal}: Turn, name: string, waitS: number): string {
  switch (status) {
    case 'stopped':
      return translate({id: 'theme.robotutor.outcome.stopped', message: 'Stopped.'});
    case 'cut_off':
      return translate({id: 'theme.robotutor.outcome.cutOff', message: 'The answer was cut off.'});
    case 'failed':
      return sayProblem(problem?.words ?? 'failed', name, waitS);
    case 'refused':
      return refusal ? sayRefusal(refusal) : '';
    default:
      return '';
  }
}

/** Returns the sentence above passages that may not fit the question. */
export const sayClosest = (aboutSelection: boolean): string =>
  aboutSelection
    ? translate({
        id: 'theme.robotutor.outcome.closestInSelection',
        message: 'Your selection may not answer this. This part of it comes closest.',
      })
    : translate({
        id: 'theme.robotutor.outcome.closest',
        message:
          'The book does not seem to answer this directly. These passages come closest.',
      });

/** Returns the sentence of a refusal; for a reason of a later version, that of the service. */
export function sayRefusal({reason, message}: Refusal): string {
  switch (reason) {
    case 'unrelated_to_selection':
      return translate({
        id: 'theme.robotutor.outcome.notInSelection',
        message: 'Your selection does not answer this.',
      });
    case 'model_declined':
      return translate({
        id: 'theme.robotutor.outcome.declined',
        message: 'I could not find an answer in these passages.',
      });
    case 'no_passages':
    case 'not_covered':
      return sayNotCovered();
    default:
      return message || sayNotCovered();
  }
}

const sayNotCovered = (): string =>
  translate({id: 'theme.robotutor.outcome.notCovered', message: 'The book does not cover this.'});

/** Returns the words on a button that tries again what failed. */
export const sayRetry = (): string =>
  translate({id: 'theme.robotutor.outcome.retry', message: 'Try again'});
