/** The words for questions that cannot be answered. */

import {translate} from '@docusaurus/Translate';

/** Names the words of a problem. */
export type ProblemWords =
  | 'down'
  | 'notAllowed'
  | 'versions'
  | 'tooSlow'
  | 'tooMany'
  | 'unreadable'
  | 'selectionUnreadable'
  | 'questionTooLong'
  | 'selectionTooLong'
  | 'tooLong'
  | 'failed'
  | 'cutOff';

/** Returns the words of a problem for the reader. `seconds` is used by `tooMany`. */
export function sayProblem(name: ProblemWords, seconds?: number): string {
  switch (name) {
    case 'down':
      return translate({
        id: 'theme.robotutor.problem.down',
        message: 'RoboTutor is not available right now. The book works as usual.',
      });
    case 'notAllowed':
      return translate({
        id: 'theme.robotutor.problem.notAllowed',
        message: 'RoboTutor is not set up for this website yet. The book works as usual.',
      });
    case 'versions':
      return translate({
        id: 'theme.robotutor.problem.versions',
        message: 'This page and RoboTutor do not fit together. Reload the page.',
      });
    case 'tooSlow':
      return translate({
        id: 'theme.robotutor.problem.tooSlow',
        message: 'This took too long. Try again.',
      });
    case 'tooMany':
      return sayTooMany(seconds);
    case 'unreadable':
      return translate({
        id: 'theme.robotutor.problem.unreadable',
        message: 'RoboTutor could not read this question. Ask it in other words.',
      });
    case 'selectionUnreadable':
      return translate({
        id: 'theme.robotutor.problem.selectionUnreadable',
        message: 'RoboTutor could not read your selection. Select the passage again.',
      });
    case 'questionTooLong':
      return translate({
        id: 'theme.robotutor.problem.questionTooLong',
        message: 'This question is too long. Ask a shorter one.',
      });
    case 'selectionTooLong':
      return translate({
        id: 'theme.robotutor.problem.selectionTooLong',
        message: 'Your selection is too long. Select a shorter passage.',
      });
    case 'tooLong':
      return translate({
        id: 'theme.robotutor.problem.tooLong',
        message: 'This is too long. Ask a shorter question or select a shorter passage.',
      });
    case 'failed':
      return translate({
        id: 'theme.robotutor.problem.failed',
        message: 'RoboTutor could not answer this time. Try again.',
      });
    case 'cutOff':
      return translate({
        id: 'theme.robotutor.problem.cutOff',
        message: 'The answer was cut off.',
      });
  }
}

function sayTooMany(seconds: number | undefined): string {
  if (seconds === undefined) {
    return translate({
      id: 'theme.robotutor.problem.tooMany',
      message: 'That was a lot of questions. Try again soon.',
    });
  }
  if (seconds === 1) {
    return translate({
      id: 'theme.robotutor.problem.tooManyOneSecond',
      message: 'That was a lot of questions. Try again in 1 second.',
    });
  }
  return translate(
    {
      id: 'theme.robotutor.problem.tooManySeconds',
      message: 'That was a lot of questions. Try again in {seconds} seconds.',
    },
    {seconds},
  );
}
