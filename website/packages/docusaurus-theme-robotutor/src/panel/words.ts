/** The words of the button and of the panel. */

import {translate} from '@docusaurus/Translate';
import {nameSource} from '../about';

/** `name` is the name that the site gives the panel. */
export const words = {
  launcher: (name: string): string =>
    translate({id: 'theme.robotutor.panel.open', message: 'Ask {name}'}, {name}),
  loadFailed: (name: string): string =>
    translate(
      {
        id: 'theme.robotutor.panel.loadFailed',
        message: '{name} could not be loaded. Check your connection and try again.',
      },
      {name},
    ),
  crashed: (name: string): string =>
    translate(
      {
        id: 'theme.robotutor.panel.crashed',
        message: '{name} has a problem. Reload the page to go on.',
      },
      {name},
    ),
  clear: (): string =>
    translate({id: 'theme.robotutor.panel.clear', message: 'New conversation'}),
  close: (): string => translate({id: 'theme.robotutor.panel.close', message: 'Close'}),
  intro: (name: string): string =>
    nameSource(
      translate({
        id: 'theme.robotutor.panel.intro',
        message: '{name} answers from this book and shows you where it says so.',
      }),
      {name},
    ),
  greeting: (): string =>
    nameSource(
      translate({
        id: 'theme.robotutor.panel.greeting',
        message: 'Hello. Ask me anything about this book, or select a passage and ask about it.',
      }),
    ),
  suggestions: (): string =>
    translate({id: 'theme.robotutor.panel.suggestions', message: 'You could ask'}),
  suggestion: (heading: string): string =>
    translate(
      {
        id: 'theme.robotutor.panel.suggestion',
        message: 'What does this page say about “{heading}”?',
      },
      {heading},
    ),
  followUps: (): string =>
    translate({id: 'theme.robotutor.panel.followUps', message: 'You could also ask'}),
  bookSuggestion: (title: string): string =>
    nameSource(
      translate({
        id: 'theme.robotutor.panel.bookSuggestion',
        message: 'What does the book say about “{title}”?',
      }),
      {title},
    ),
  cleared: (): string =>
    translate({
      id: 'theme.robotutor.panel.cleared',
      message: 'The conversation was removed.',
    }),
  undo: (): string => translate({id: 'theme.robotutor.panel.undo', message: 'Undo'}),
  back: (): string =>
    translate({id: 'theme.robotutor.panel.back', message: 'Back to the answer'}),
  smallPrint: (): string =>
    translate({
      id: 'theme.robotutor.panel.smallPrint',
      message: 'Answers can be wrong. Follow the links to check.',
    }),
  latest: (): string =>
    translate({id: 'theme.robotutor.panel.latest', message: 'Jump to the latest'}),
  conversation: (): string =>
    translate({id: 'theme.robotutor.panel.conversation', message: 'Conversation'}),
  wholeBook: (): string =>
    nameSource(translate({id: 'theme.robotutor.panel.scope.book', message: 'Whole book'})),
  thisModule: (): string =>
    translate({id: 'theme.robotutor.panel.scope.module', message: 'This module'}),
  thisPage: (): string =>
    translate({id: 'theme.robotutor.panel.scope.page', message: 'This page'}),
  search: (): string =>
    nameSource(translate({id: 'theme.robotutor.panel.search', message: 'Search the book'})),
  firstPage: (): string =>
    nameSource(
      translate({
        id: 'theme.robotutor.panel.firstPage',
        message: 'Go to the first page of the book',
      }),
    ),
  answered: (): string =>
    translate({id: 'theme.robotutor.panel.said.answered', message: 'The answer is here.'}),
  highlighted: (): string =>
    translate({
      id: 'theme.robotutor.panel.said.highlighted',
      message: 'The passage is highlighted in the page.',
    }),
  shownSection: (): string =>
    translate({
      id: 'theme.robotutor.panel.said.section',
      message: 'The page shows this section.',
    }),
  shownPage: (): string =>
    translate({id: 'theme.robotutor.panel.said.page', message: 'The page is open.'}),
};
