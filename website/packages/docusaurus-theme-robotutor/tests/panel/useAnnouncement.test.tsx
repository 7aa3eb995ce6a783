// @vitest-environment jsdom
import {act, type ReactNode} from 'react';
import {expect, it} from 'vitest';
import type {Turn} from '../../src/conversation/model';
import {useAnnouncement, type Said} from '../../src/panel/announcement';
import {makeTurn} from '../answer/turns';
import {render} from '../render';

let said: Said | null = null;
let say: (text: string) => void = () => {};

function Listener({turns, open = true}: {turns: Turn[]; open?: boolean}): ReactNode {
  [said, say] = useAnnouncement(turns, 'Ada', open);
  return null;
}

const done = (id: string, text: string): Turn => makeTurn({id, text});
const arriving = (id: string): Turn => makeTurn({id, status: 'searching'});

it('says nothing about answers from before a reload', () => {
  render(<Listener turns={[done('a', 'Old.')]} />);
  expect(said).toBeNull();
});

it('says each answer once, and equal answers again', () => {
  const {show} = render(<Listener turns={[arriving('a')]} />);
  show(<Listener turns={[done('a', 'Yes.')]} />);
  const first = said;
  expect(first).toMatchObject({text: 'Yes.', inPanel: true});
  show(<Listener turns={[done('a', 'Yes.')]} />);
  expect(said).toBe(first);
  show(<Listener turns={[done('a', 'Yes.'), arriving('b')]} />);
  show(<Listener turns={[done('a', 'Yes.'), done('b', 'Yes.')]} />);
  expect(said?.text).toBe('Yes.');
  expect(said?.id).not.toBe(first?.id);
});

it('says the answer of a question that was tried again above others', () => {
  const {show} = render(<Listener turns={[done('a', 'Old.'), done('b', 'Last.')]} />);
  show(<Listener turns={[arriving('c'), done('b', 'Last.')]} />);
  show(<Listener turns={[done('c', 'New.'), done('b', 'Last.')]} />);
  expect(said?.text).toBe('New.');
});

it('says an answer that arrives at once', () => {
  const {show} = render(<Listener turns={[]} />);
  show(<Listener turns={[makeTurn({id: 'a', status: 'failed'})]} />);
  expect(said?.text).toBe('Ada could not answer this time. Try again.');
});

it('says words outside of a panel that is closed, and equal words again', () => {
  render(<Listener turns={[]} open={false} />);
  act(() => say('The passage is highlighted in the page.'));
  const first = said;
  expect(first?.inPanel).toBe(false);
  act(() => say('The passage is highlighted in the page.'));
  expect(said?.id).not.toBe(first?.id);
});
