/** The pages of the book as in the theme. A page of another host is none of them. */

import {useBook as useBookOnSite, type Book} from '../src/panel/useBook';
import {isOnBook} from './site';

export * from '../src/panel/useBook';

export function useBook(settings: Parameters<typeof useBookOnSite>[0], open: boolean): Book {
  const book = useBookOnSite(settings, open && isOnBook());
  return isOnBook() ? book : {...book, loading: false};
}
