/** The words around the field for questions. */

import {translate} from '@docusaurus/Translate';

export const sayFieldName = (): string =>
  translate({id: 'theme.robotutor.compose.field', message: 'Ask about this book'});

export const sayFieldHint = (): string =>
  translate({id: 'theme.robotutor.compose.hint', message: 'Ask about this book …'});

export const saySelectionHint = (): string =>
  translate({id: 'theme.robotutor.compose.selectionHint', message: 'Ask about your selection …'});

export const sayAsk = (): string =>
  translate({id: 'theme.robotutor.compose.ask', message: 'Ask'});

export const sayStop = (): string =>
  translate({id: 'theme.robotutor.compose.stop', message: 'Stop'});

/** Says how many characters the question may still have, or how many it has too many. */
export function sayCharactersLeft(left: number): string {
  if (left === 1) {
    return translate({
      id: 'theme.robotutor.compose.oneCharacterLeft',
      message: '1 character left',
    });
  }
  if (left >= 0) {
    return translate(
      {id: 'theme.robotutor.compose.charactersLeft', message: '{count} characters left'},
      {count: left},
    );
  }
  if (left === -1) {
    return translate({
      id: 'theme.robotutor.compose.oneCharacterTooMany',
      message: 'Your question is 1 character too long.',
    });
  }
  return translate(
    {
      id: 'theme.robotutor.compose.charactersTooMany',
      message: 'Your question is {count} characters too long.',
    },
    {count: -left},
  );
}

export function sayWait(seconds: number): string {
  if (seconds === 1) {
    return translate({
      id: 'theme.robotutor.compose.waitOneSecond',
      message: 'You can ask again in 1 second.',
    });
  }
  return translate(
    {id: 'theme.robotutor.compose.wait', message: 'You can ask again in {seconds} seconds.'},
    {seconds},
  );
}

export function sayFromSelection(words: number): string {
  if (words === 1) {
    return translate({
      id: 'theme.robotutor.compose.fromSelectionOneWord',
      message: 'From your selection (1 word)',
    });
  }
  return translate(
    {id: 'theme.robotutor.compose.fromSelection', message: 'From your selection ({words} words)'},
    {words},
  );
}

export const sayRemove = (): string =>
  translate({id: 'theme.robotutor.compose.remove', message: 'remove'});

export const sayRemoveSelection = (): string =>
  translate({id: 'theme.robotutor.compose.removeSelection', message: 'remove your selection'});

export const saySelectedText = (): string =>
  translate({id: 'theme.robotutor.compose.selectedText', message: 'Your selection'});

export const saySelectionTooLong = (): string =>
  translate({
    id: 'theme.robotutor.compose.selectionTooLong',
    message: 'Your selection is too long. Select a shorter passage.',
  });

export const sayScope = (): string =>
  translate({id: 'theme.robotutor.compose.scope', message: 'Look in'});

export const sayHelped = (): string =>
  translate({id: 'theme.robotutor.rating.question', message: 'Did this help?'});

export const sayYes = (): string =>
  translate({id: 'theme.robotutor.rating.yes', message: 'Yes'});

export const sayNo = (): string => translate({id: 'theme.robotutor.rating.no', message: 'No'});

export const sayMissing = (): string =>
  translate({id: 'theme.robotutor.rating.missing', message: 'What was missing? (optional)'});

export const saySend = (): string =>
  translate({id: 'theme.robotutor.rating.send', message: 'Send'});

export const sayThanks = (): string =>
  translate({id: 'theme.robotutor.rating.thanks', message: 'Thank you.'});

export const sayNotSent = (): string =>
  translate({
    id: 'theme.robotutor.rating.notSent',
    message: 'This could not be sent. Try again later.',
  });
