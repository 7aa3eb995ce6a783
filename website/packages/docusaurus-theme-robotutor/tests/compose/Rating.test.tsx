// @vitest-environment jsdom
import {act} from 'react';
import {describe, expect, it, vi} from 'vitest';
import {Rating, type RatingProps} from '../../src/compose/Rating';
import type {Turn} from '../../src/conversation/model';
import {beginTurn} from '../../src/conversation/turns';
import {click, findButton, render, type} from '../render';

const TURN: Turn = {...beginTurn({question: 'Why?'}), status: 'done', answerId: 'a1'};

/** Shows a rating. It keeps a stored rating with its turn, as a conversation does. */
function open(turn: Turn = TURN, onRate?: RatingProps['onRate']) {
  const rate = vi.fn<RatingProps['onRate']>(onRate ?? (async () => true));
  const handle: RatingProps['onRate'] = async (rated, rating, note) => {
    const isStored = await rate(rated, rating, note);
    if (isStored) {
      show(<Rating turn={{...turn, rating}} onRate={handle} />);
    }
    return isStored;
  };
  const {element, show} = render(<Rating turn={turn} onRate={handle} />);
  const calls = (): unknown[] => rate.mock.calls.map(([, rating, note]) => [rating, note]);
  return {element, calls};
}

const isPressed = (element: Element, name: string): boolean =>
  findButton(element, name).getAttribute('aria-pressed') === 'true';

describe('a rating', () => {
  it.each(['searching', 'streaming', 'failed', 'cut_off', 'stopped'] as const)(
    'is not asked for while a turn is %s',
    (status) => {
      expect(open({...TURN, status}).element.textContent).toBe('');
    },
  );

  it('is not asked for a greeting, or for an answer without an id', () => {
    expect(open({...TURN, kind: 'reply'}).element.textContent).toBe('');
    expect(open({...TURN, answerId: undefined}).element.textContent).toBe('');
  });

  it('stands next to other buttons, which an answer without an id keeps', () => {
    const unwritten = {...TURN, answerId: undefined};
    const {element} = render(
      <Rating turn={unwritten} onRate={async () => true}>
        <button type="button">Copy</button>
      </Rating>,
    );
    expect(element.textContent).toBe('Copy');
  });

  it('is sent at once, with thanks', async () => {
    const {element, calls} = open();
    expect(element.querySelector('[role=group]')?.textContent).toContain('Did this help?');
    await click(findButton(element, 'Yes'));
    expect(calls()).toEqual([['up', undefined]]);
    expect(isPressed(element, 'Yes')).toBe(true);
    expect(element.querySelector('[role=status]')?.textContent).toBe('Thank you.');
    expect(element.querySelector('textarea')).toBeNull();
  });

  it('asks after No what was missing, and sends it once', async () => {
    const {element, calls} = open();
    await click(findButton(element, 'No'));
    const field = element.querySelector('textarea')!;
    expect(field.labels?.[0]?.textContent).toContain('What was missing? (optional)');
    await click(findButton(element, 'Send'));
    expect(calls()).toHaveLength(1);
    type(field, ' A figure. ');
    findButton(element, 'Send').focus();
    await click(findButton(element, 'Send'));
    expect(document.activeElement).toBe(findButton(element, 'No'));
    expect(calls()).toEqual([['down', undefined], ['down', 'A figure.']]);
    expect(element.querySelector('textarea')).toBeNull();
    expect(element.textContent).toContain('Thank you.');
  });

  it('can be replaced', async () => {
    const {element, calls} = open();
    await click(findButton(element, 'No'));
    await click(findButton(element, 'Yes'));
    expect(calls()).toEqual([['down', undefined], ['up', undefined]]);
    expect([isPressed(element, 'Yes'), isPressed(element, 'No')]).toEqual([true, false]);
    expect(element.querySelector('textarea')).toBeNull();
  });

  it('that fails says so, and the note stays', async () => {
    let isUp = false;
    const {element} = open(TURN, async () => isUp);
    await click(findButton(element, 'No'));
    expect(element.querySelector('[role=alert]')?.textContent).toContain('could not be sent');
    expect(isPressed(element, 'No')).toBe(false);
    const field = element.querySelector('textarea')!;
    type(field, 'A figure.');
    await click(findButton(element, 'Send'));
    expect(field.value).toBe('A figure.');
    isUp = true;
    await click(findButton(element, 'Send'));
    expect(element.querySelector('[role=alert]')).toBeNull();
    expect(element.textContent).toContain('Thank you.');
  });

  it('is stored in the order of the clicks', async () => {
    const answers: ((isStored: boolean) => void)[] = [];
    const {element, calls} = open(TURN, () => new Promise((resolve) => answers.push(resolve)));
    await click(findButton(element, 'Yes'));
    await click(findButton(element, 'No'));
    expect(calls()).toEqual([['up', undefined]]);
    await act(async () => answers[0]!(true));
    expect(calls()).toEqual([['up', undefined], ['down', undefined]]);
    await act(async () => answers[1]!(true));
    expect(isPressed(element, 'No')).toBe(true);
  });
});
