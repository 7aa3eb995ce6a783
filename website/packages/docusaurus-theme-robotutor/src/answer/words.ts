/** The words that an answer shows on the screen. Sites translate them by their ids. */

import {translate} from '@docusaurus/Translate';

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

/** Words without variable parts. Each is a function, because a site's language is known late. */
export const words = {
  searching: () =>
    translate({id: 'theme.robotutor.answer.searching', message: 'Looking in the book …'}),
  near: () => translate({id: 'theme.robotutor.answer.near', message: 'Other places to look'}),
  related: () =>
    translate({id: 'theme.robotutor.answer.related', message: 'These sections may help'}),
  more: () => translate({id: 'theme.robotutor.answer.more', message: 'Show more'}),
  less: () => translate({id: 'theme.robotutor.answer.less', message: 'Show less'}),
  answerAnyway: () =>
    translate({
      id: 'theme.robotutor.answer.answerAnyway',
      message: 'Answer from the selection anyway',
    }),
  wholeBook: () =>
    translate({id: 'theme.robotutor.answer.wholeBook', message: 'Search the whole book'}),
  table: () => translate({id: 'theme.robotutor.answer.table', message: 'Table'}),
};
