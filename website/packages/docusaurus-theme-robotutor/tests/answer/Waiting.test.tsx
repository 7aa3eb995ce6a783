// @vitest-environment jsdom
import {act} from 'react';
import {afterEach, beforeEach, expect, it, vi} from 'vitest';
import {clear, draw, press} from './rendering';
import {makeSource, makeTurn} from './turns';

beforeEach(() => void vi.useFakeTimers());
afterEach(async () => {
  await clear();
  vi.useRealTimers();
});

const wait = (seconds: number): Promise<void> =>
  act(async () => void (await vi.advanceTimersByTimeAsync(seconds * 1000)));
const read = (): string => document.body.textContent ?? '';

it('says in changing words what is happening, and offers the passages after ten seconds', async () => {
  const onShowPassages = vi.fn();
  const turn = makeTurn({status: 'searching', model: 'm'});
  await draw(turn, {onShowPassages});
  expect(read()).toBe('Looking in the book …');
  await wait(6);
  expect(read()).toBe('Still looking in the book …');
  const found = {...turn, sources: [makeSource(), makeSource({number: 2})]};
  await draw(found, {onShowPassages});
  expect(read()).toBe('Reading 2 passages …');
  await wait(3);
  expect(read()).toBe('Writing the answer …');
  await wait(3);
  await press('Show the passages now');
  expect(onShowPassages).toHaveBeenCalledOnce();
});

it('shows no raw text of quotations before their places are known', async () => {
  await draw(makeTurn({status: 'streaming', text: '**[Balance](/x)** [1]', sources: [makeSource()]}));
  expect(read()).toBe('Reading a passage …');
});
