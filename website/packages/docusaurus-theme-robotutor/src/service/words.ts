/** The words for questions that cannot be answered. */

import {translate} from '@docusaurus/Translate';
import {nameSource} from '../about';

/** The names of all problems. */
export const PROBLEM_WORDS = [
  'down',
  'notAllowed',
  'versions',
  'tooSlow',
  'tooMany',
  'unreadable',
  'selectionUnreadable',
  'questionTooLong',
  'selectionTooLong',
  'tooLong',
  'indexVersion',
  'indexMissing',
  'searchBlocked',
  'failed',
] as const;

/** Names the words of a problem. */
export type ProblemWords = (typeof PROBLEM_WORDS)[number];

/**
 * Returns the words of a problem for the reader.
 *
 * @param name - The name of the panel.
 * @param waitS - The seconds until the next question; 0 if it may be asked now. Only `tooMany`
 *   uses them.
 */
export function sayProblem(problem: ProblemWords, name: string, waitS = 0): string {
  switch (problem) {
    case 'down':
      return nameSource(
        translate({
          id: 'theme.robotutor.problem.down',
          message: '{name} is not available right now. The book works as usual.',
        }),
        {name},
      );
    case 'notAllowed':
      return nameSource(
        translate({
          id: 'theme.robotutor.problem.notAllowed',
          message: '{name} is not set up for this website yet. The book works as usual.',
        }),
        {name},
      );
    case 'versions':
      return translate(
        {
          id: 'theme.robotutor.problem.versions',
          message: 'This page and {name} do not fit together. Reload the page.',
        },
        {name},
      );
    case 'tooSlow':
      return translate({
        id: 'theme.robotutor.problem.tooSlow',
        message: 'This took too long. Try again.',
      });
    case 'tooMany':
      return sayTooMany(waitS);
    case 'unreadable':
      return translate(
        {
          id: 'theme.robotutor.problem.unreadable',
          message: '{name} could not read this question. Ask it in other words.',
        },
        {name},
      );
    case 'selectionUnreadable':
      return translate(
        {
          id: 'theme.robotutor.problem.selectionUnreadable',
          message: '{name} could not read your selection. Select the passage again.',
        },
        {name},
      );
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
    case 'indexVersion':
      return translate({
        id: 'theme.robotutor.problem.indexVersion',
        message: 'The search index does not fit this page. Reload the page, or try again later.',
      });
    case 'indexMissing':
      return translate({
        id: 'theme.robotutor.problem.indexMissing',
        message: 'The search index could not be loaded. Check your connection and try again.',
      });
    case 'searchBlocked':
      return nameSource(
        translate({
          id: 'theme.robotutor.problem.searchBlocked',
          message: 'Your browser does not let {name} search on this page. The book works as usual.',
        }),
        {name},
      );
    case 'failed':
      return translate(
        {
          id: 'theme.robotutor.problem.failed',
          message: '{name} could not answer this time. Try again.',
        },
        {name},
      );
  }
}

function sayTooMany(waitS: number): string {
  if (waitS === 0) {
    return translate({
      id: 'theme.robotutor.problem.tooManyBefore',
      message: 'That was a lot of questions. You can ask again now.',
    });
  }
  if (waitS === 1) {
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
    {seconds: waitS},
  );
}
