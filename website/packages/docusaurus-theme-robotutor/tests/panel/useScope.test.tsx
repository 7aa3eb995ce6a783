// @vitest-environment jsdom
import {act, type ReactNode} from 'react';
import {expect, it, vi} from 'vitest';
import type {Page} from '../../src/service/requests';
import type {Book} from '../../src/panel/useBook';
import {useScope} from '../../src/panel/useScope';
import {render} from '../render';

const makePage = (name: string): Page => ({
  title: name, url: `/${name}`, doc_path: `${name}.md`, module: 'm', chapter: '', sections: [],
});
const A = makePage('a');
const B = makePage('b');

let found: ReturnType<typeof useScope>;

function Chooser(book: Pick<Book, 'page' | 'loading'>): ReactNode {
  found = useScope({pages: [], failed: false, ...book});
  return null;
}

it('keeps the choice while another page is loading, and then asks that page', () => {
  const {show} = render(<Chooser page={A} loading={false} />);
  act(() => found.choose('page'));
  show(<Chooser page={null} loading />);
  expect(found.scope).toBe('page');
  expect(found.scopes).toHaveLength(3);
  const ask = vi.fn();
  found.afterLoading('page', ask);
  expect(ask).not.toHaveBeenCalled();
  show(<Chooser page={B} loading={false} />);
  expect(ask).toHaveBeenCalledExactlyOnceWith(B);
});

it('does not wait to ask the whole book', () => {
  render(<Chooser page={null} loading />);
  const ask = vi.fn();
  found.afterLoading('book', ask);
  expect(ask).toHaveBeenCalledOnce();
});

it('falls back to the whole book on a page that is not in the book, and comes back', () => {
  const {show} = render(<Chooser page={A} loading={false} />);
  act(() => found.choose('page'));
  show(<Chooser page={null} loading={false} />);
  expect(found.scope).toBe('book');
  show(<Chooser page={B} loading={false} />);
  expect(found.scope).toBe('page');
});
