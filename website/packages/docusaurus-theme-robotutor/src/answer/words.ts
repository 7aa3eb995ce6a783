/** The words that an answer shows on the screen. Sites translate them by their ids. */

import {translate} from '@docusaurus/Translate';

/** Returns the sentence above the passages of an answer that may not fit the question. */
export const closestWords = (selected: boolean): string =>
  selected
    ? translate({
        id: 'theme.robotutor.answer.closestInSelection',
        message: 'Your selection may not answer this. This part of it comes closest.',
      })
    : translate({
        id: 'theme.robotutor.answer.closest',
        message:
          'The book does not seem to answer this directly. These passages come closest.',
      });

/** Returns the heading of the passages that an answer quotes or cites. */
export const sourcesWords = (selected: boolean): string =>
  selected
    ? translate({id: 'theme.robotutor.answer.selection', message: 'From your selection'})
    : translate({id: 'theme.robotutor.answer.sources', message: 'Where the book says this'});

/** Returns the name of a citation for screen readers. */
export const citationWords = (number: number, place: string): string =>
  translate(
    {id: 'theme.robotutor.answer.citation', message: '{number}: {place}'},
    {number, place},
  );

/** Returns the note that names what was searched for. */
export const searchedWords = (question: string): string =>
  translate(
    {id: 'theme.robotutor.answer.searched', message: 'Searched for: {question}'},
    {question},
  );

/** Returns the note that the words of a question were corrected or completed. */
export const showingWords = (question: string): string =>
  translate(
    {id: 'theme.robotutor.answer.showing', message: 'Showing results for “{question}”.'},
    {question},
  );

/** Returns the name of the button that searches the words as the reader typed them. */
export const exactWords = (question: string): string =>
  translate(
    {id: 'theme.robotutor.answer.exact', message: 'Search for “{question}” instead'},
    {question},
  );

/** Returns the request to wait after too many questions. */
export const waitWords = (seconds: number): string =>
  seconds > 0
    ? translate(
        {
          id: 'theme.robotutor.answer.wait',
          message: 'That was a lot of questions. Try again in {seconds} seconds.',
        },
        {seconds},
      )
    : translate({
        id: 'theme.robotutor.answer.waited',
        message: 'You can ask again now.',
      });

/** Words without variable parts. Each is a function, because a site's language is known late. */
export const words = {
  searching: () =>
    translate({id: 'theme.robotutor.answer.searching', message: 'Looking in the book …'}),
  near: () => translate({id: 'theme.robotutor.answer.near', message: 'Other places to look'}),
  related: () =>
    translate({id: 'theme.robotutor.answer.related', message: 'These sections may help'}),
  more: () => translate({id: 'theme.robotutor.answer.more', message: 'Show more'}),
  less: () => translate({id: 'theme.robotutor.answer.less', message: 'Show less'}),
  notCovered: () =>
    translate({
      id: 'theme.robotutor.answer.notCovered',
      message: 'The book does not cover this.',
    }),
  notInSelection: () =>
    translate({
      id: 'theme.robotutor.answer.notInSelection',
      message: 'Your selection does not answer this.',
    }),
  declined: () =>
    translate({
      id: 'theme.robotutor.answer.declined',
      message: 'I could not find an answer in these passages.',
    }),
  answerAnyway: () =>
    translate({
      id: 'theme.robotutor.answer.answerAnyway',
      message: 'Answer from the selection anyway',
    }),
  wholeBook: () =>
    translate({id: 'theme.robotutor.answer.wholeBook', message: 'Search the whole book'}),
  dropFilters: () =>
    translate({id: 'theme.robotutor.answer.dropFilters', message: 'Search the whole book'}),
  stopped: () => translate({id: 'theme.robotutor.answer.stopped', message: 'Stopped.'}),
  cutOff: () =>
    translate({id: 'theme.robotutor.answer.cutOff', message: 'The answer was cut off.'}),
  failed: () =>
    translate({
      id: 'theme.robotutor.answer.failed',
      message: 'RoboTutor is not available right now. The book works as usual.',
    }),
  retry: () => translate({id: 'theme.robotutor.answer.retry', message: 'Try again'}),
  copy: () => translate({id: 'theme.robotutor.answer.copy', message: 'Copy'}),
  copied: () => translate({id: 'theme.robotutor.answer.copied', message: 'Copied'}),
  notCopied: () =>
    translate({
      id: 'theme.robotutor.answer.notCopied',
      message: 'Your browser did not allow copying. Select the text and copy it yourself.',
    }),
  table: () => translate({id: 'theme.robotutor.answer.table', message: 'Table'}),
};
