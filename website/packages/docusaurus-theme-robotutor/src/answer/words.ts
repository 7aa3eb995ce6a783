/** The words that an answer shows on the screen. Sites translate them by their ids. */

import {translate} from '@docusaurus/Translate';
import {nameSource} from '../about';

/** Says that passages were found and are being read. */
export const readingWords = (count: number): string =>
  count === 1
    ? translate({id: 'theme.robotutor.answer.readingOne', message: 'Reading a passage …'})
    : translate(
        {id: 'theme.robotutor.answer.reading', message: 'Reading {count} passages …'},
        {count},
      );

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
    nameSource(
      translate({id: 'theme.robotutor.answer.searching', message: 'Looking in the book …'}),
    ),
  stillSearching: () =>
    nameSource(
      translate({
        id: 'theme.robotutor.answer.stillSearching',
        message: 'Still looking in the book …',
      }),
    ),
  writing: () => translate({id: 'theme.robotutor.answer.writing', message: 'Writing the answer …'}),
  slow: () =>
    translate({
      id: 'theme.robotutor.answer.slow',
      message: 'This takes longer than usual.',
    }),
  showPassages: () =>
    translate({id: 'theme.robotutor.answer.showPassages', message: 'Show the passages now'}),
  sources: () =>
    nameSource(
      translate({id: 'theme.robotutor.answer.sources', message: 'Where the book says this'}),
    ),
  show: () => translate({id: 'theme.robotutor.answer.show', message: 'Show'}),
  contact: () => translate({id: 'theme.robotutor.answer.contact', message: 'Ask a person'}),
  siteSearch: () =>
    translate({id: 'theme.robotutor.answer.siteSearch', message: 'Search the site for this'}),
  surrounding: () =>
    translate({id: 'theme.robotutor.answer.surrounding', message: 'The section around it'}),
  terms: () => translate({id: 'theme.robotutor.answer.terms', message: 'Terms and symbols'}),
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
    nameSource(
      translate({id: 'theme.robotutor.answer.wholeBook', message: 'Search the whole book'}),
    ),
  table: () => translate({id: 'theme.robotutor.answer.table', message: 'Table'}),
  diagram: () => translate({id: 'theme.robotutor.answer.diagram', message: 'Diagram'}),
};
