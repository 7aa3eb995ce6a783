/** The selected text as in the theme. On a page of another host, its place in the book is unknown. */

import type {Selection} from '../src/conversation/model';
import {currentSelection as readOnBook} from '../src/selection/readSelection';
import {isOnBook} from './site';

export * from '../src/selection/readSelection';

export function currentSelection(pathname: string): Selection | null {
  const selection = readOnBook(pathname);
  return selection && !isOnBook() ? {...selection, url: ''} : selection;
}
