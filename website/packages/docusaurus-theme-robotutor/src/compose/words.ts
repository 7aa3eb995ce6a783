/** The words around the field for questions. */

import {translate} from '@docusaurus/Translate';
import {nameSource} from '../about';
import type {Selection} from '../conversation/model';

/** Returns the name of the field for screen readers. */
export const sayFieldName = (): string =>
  nameSource(translate({id: 'theme.robotutor.compose.field', message: 'Ask about this book'}));

/** Returns the words in the empty field. */
export const sayFieldHint = (): string =>
  nameSource(translate({id: 'theme.robotutor.compose.hint', message: 'Ask about this book …'}));

/** Returns the words in the empty field if text is selected. */
export const saySelectionHint = (): string =>
  translate({id: 'theme.robotutor.compose.selectionHint', message: 'Ask about your selection …'});

/** Returns the name of the button that sends the question. */
export const sayAsk = (): string =>
  translate({id: 'theme.robotutor.compose.ask', message: 'Ask'});

/** Returns the name of the button that stops the answer. */
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

/** Says after how many seconds the next question may be asked. */
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

/** Says that the question is about selected text, with its number of words, or its kind. */
export function sayFromSelection({text, words}: Selection): string {
  if (words === 0 && text.includes('```')) {
    return translate({
      id: 'theme.robotutor.compose.fromSelectionCode',
      message: 'From your selection (code)',
    });
  }
  if (words === 0) {
    return translate({
      id: 'theme.robotutor.compose.fromSelectionFormula',
      message: 'From your selection (formula)',
    });
  }
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

/** Returns the words on the button that removes the selection. */
export const sayRemove = (): string =>
  translate({id: 'theme.robotutor.compose.remove', message: 'remove'});

/** Returns the name of that button for screen readers; it begins with the visible words. */
export const sayRemoveSelection = (): string =>
  translate({id: 'theme.robotutor.compose.removeSelection', message: 'remove your selection'});

/** Returns the name of the selected text for screen readers. */
export const saySelectedText = (): string =>
  translate({id: 'theme.robotutor.compose.selectedText', message: 'Your selection'});

/** Returns the label of the choice of the part of the book. */
export const sayScope = (): string =>
  translate({id: 'theme.robotutor.compose.scope', message: 'Look in'});

/** Returns the question for a rating. */
export const sayHelped = (): string =>
  translate({id: 'theme.robotutor.rating.question', message: 'Did this help?'});

/** Returns the good rating. */
export const sayYes = (): string =>
  translate({id: 'theme.robotutor.rating.yes', message: 'Yes'});

/** Returns the bad rating. */
export const sayNo = (): string => translate({id: 'theme.robotutor.rating.no', message: 'No'});

/** Returns the label of the note after a bad rating. */
export const sayMissing = (): string =>
  translate({id: 'theme.robotutor.rating.missing', message: 'What was missing? (optional)'});

/** Returns the name of the button that sends the note. */
export const saySend = (): string =>
  translate({id: 'theme.robotutor.rating.send', message: 'Send'});

/** Thanks for a rating. */
export const sayThanks = (): string =>
  translate({id: 'theme.robotutor.rating.thanks', message: 'Thank you.'});

/** Says that a rating could not be stored. */
export const sayNotSent = (): string =>
  translate({
    id: 'theme.robotutor.rating.notSent',
    message: 'This could not be sent. Try again later.',
  });
