import {useEffect, useRef, useState} from 'react';
import type {Scope, ScopeId} from '../compose/ScopeChoice';
import type {Page} from '../service/requests';
import {listScopes, type Book} from './useBook';

type Action = (page: Page | null) => void;

/**
 * Returns the part of the book that the reader chose, and the parts to choose from.
 *
 * After the reader went to another page, the choice stays as it was until the new page is known.
 */
export function useScope(book: Book): {
  scope: ScopeId;
  scopes: Scope[];
  choose: (scope: ScopeId) => void;
  /** Does something as soon as the page is known, which is mostly at once. The book needs no page. */
  afterLoading: (part: ScopeId, action: Action) => void;
} {
  const {page, loading} = book;
  const [chosen, setChosen] = useState<ScopeId>('book');
  const [before, setBefore] = useState(page);
  const waiting = useRef<Action | null>(null);
  if (!loading && before !== page) {
    setBefore(page);
  }
  useEffect(() => {
    if (!loading) {
      waiting.current?.(page);
      waiting.current = null;
    }
  }, [loading, page]);
  const scopes = listScopes(loading ? before : page);
  const scope = scopes.some(({id}) => id === chosen) ? chosen : 'book';
  const afterLoading = (part: ScopeId, action: Action): void => {
    if (loading && part !== 'book') {
      waiting.current = action;
    } else {
      action(page);
    }
  };
  return {scope, scopes, choose: setChosen, afterLoading};
}
