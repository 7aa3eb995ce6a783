// @vitest-environment jsdom
import {act} from 'react';
import {describe, expect, it, vi} from 'vitest';
import {Composer, type ComposerProps} from '../../src/compose/Composer';
import type {Selection} from '../../src/conversation/model';
import {click, findButton, press, render, type} from '../render';

const SELECTION: Selection = {text: 'A robot\nmoves.', words: 3, url: '/a', section: 'A'};
const SCOPES: ComposerProps['scopes'] = [
  {id: 'book', label: 'The whole book'},
  {id: 'module', label: 'This module'},
  {id: 'page', label: 'This page'},
];

function open(more: Partial<ComposerProps> = {}) {
  const onAsk = vi.fn();
  const onStop = vi.fn();
  const onScope = vi.fn();
  const onRemoveSelection = vi.fn();
  const props: ComposerProps = {
    busy: false,
    waitS: 0,
    scope: 'book',
    scopes: SCOPES,
    onAsk,
    onStop,
    onScope,
    onRemoveSelection,
    ...more,
  };
  const {element, show} = render(<Composer {...props} />);
  const field = element.querySelector<HTMLTextAreaElement>('form > div textarea')!;
  const change = (changed: Partial<ComposerProps>): void =>
    show(<Composer {...props} {...changed} />);
  return {element, field, change, onAsk, onStop, onScope, onRemoveSelection};
}

const isDisabled = (button: HTMLElement): boolean =>
  button.getAttribute('aria-disabled') === 'true';

describe('the field', () => {
  it('has its name, and Enter sends the question once', () => {
    const {field, onAsk} = open();
    expect(field.getAttribute('aria-label')).toBe('Ask about this book');
    type(field, '  What is a robot?\n');
    expect(press(field, {key: 'Enter'})).toBe(false);
    expect(press(field, {key: 'Enter'})).toBe(false);
    expect(onAsk.mock.calls).toEqual([['What is a robot?']]);
    expect(field.value).toBe('');
  });

  it('Shift and Enter begin a new line', () => {
    const {field, onAsk} = open();
    type(field, 'One');
    expect(press(field, {key: 'Enter', shiftKey: true})).toBe(true);
    expect(onAsk).not.toHaveBeenCalled();
  });

  it.each([
    ['while it composes', {isComposing: true}],
    ['in Safari', {keyCode: 229}],
  ])('Enter of an input method sends nothing %s', (_, init) => {
    const {field, onAsk} = open();
    type(field, 'ロボット');
    expect(press(field, {key: 'Enter', ...init})).toBe(true);
    expect(onAsk).not.toHaveBeenCalled();
    press(field, {key: 'Enter'});
    expect(onAsk).toHaveBeenCalledOnce();
  });

  it('sends no blank question', async () => {
    const {element, field, onAsk} = open();
    type(field, ' \n ');
    press(field, {key: 'Enter'});
    await click(findButton(element, 'Ask'));
    expect(onAsk).not.toHaveBeenCalled();
    expect(isDisabled(findButton(element, 'Ask'))).toBe(true);
  });

  it('tells before it is full, and sends nothing longer', () => {
    const {element, field, onAsk} = open();
    type(field, 'x'.repeat(1_799));
    expect(element.textContent).not.toContain('characters');
    type(field, 'x'.repeat(1_999));
    expect(element.textContent).toContain('1 character left');
    type(field, 'x'.repeat(2_005));
    expect(element.textContent).toContain('Your question is 5 characters too long.');
    expect(field.getAttribute('aria-invalid')).toBe('true');
    press(field, {key: 'Enter'});
    expect(onAsk).not.toHaveBeenCalled();
    expect(field.value).toHaveLength(2_005);
    type(field, 'x'.repeat(2_000));
    press(field, {key: 'Enter'});
    expect(onAsk).toHaveBeenCalledOnce();
  });

  it('takes the focus when it is asked to', () => {
    const {field, change} = open({autoFocusKey: undefined});
    expect(document.activeElement).not.toBe(field);
    change({autoFocusKey: 1});
    expect(document.activeElement).toBe(field);
    field.blur();
    change({autoFocusKey: 1, waitS: 1});
    expect(document.activeElement).not.toBe(field);
    change({autoFocusKey: 2});
    expect(document.activeElement).toBe(field);
  });
});

describe('the button', () => {
  it('asks, then stops, and keeps the focus', async () => {
    const {element, field, change, onAsk, onStop} = open();
    type(field, 'Why?');
    const button = findButton(element, 'Ask');
    button.focus();
    await click(button);
    expect(onAsk).toHaveBeenCalledOnce();
    change({busy: true});
    expect(findButton(element, 'Stop')).toBe(button);
    expect(document.activeElement).toBe(button);
    await click(button);
    expect(onStop).toHaveBeenCalledOnce();
    expect(onAsk).toHaveBeenCalledOnce();
  });

  it('does not stop the answer with the second click of a double click', async () => {
    const {element, change, onStop} = open();
    change({busy: true});
    await click(findButton(element, 'Stop'), 2);
    expect(onStop).not.toHaveBeenCalled();
  });

  it('keeps what is typed while an answer arrives', () => {
    const {field, change, onAsk, onStop} = open({busy: true});
    type(field, 'Next?');
    press(field, {key: 'Enter'});
    expect(field.value).toBe('Next?');
    expect(onAsk).not.toHaveBeenCalled();
    expect(onStop).not.toHaveBeenCalled();
    change({busy: false});
    press(field, {key: 'Enter'});
    expect(onAsk).toHaveBeenCalledWith('Next?');
  });

  it('waits after too many questions', () => {
    const {element, field, change, onAsk} = open({waitS: 2});
    type(field, 'Why?');
    press(field, {key: 'Enter'});
    expect(onAsk).not.toHaveBeenCalled();
    expect(isDisabled(findButton(element, 'Ask'))).toBe(true);
    expect(element.textContent).toContain('You can ask again in 2 seconds.');
    change({waitS: 1});
    expect(element.textContent).toContain('You can ask again in 1 second.');
    change({waitS: 0});
    expect(element.textContent).not.toContain('again');
    expect(isDisabled(findButton(element, 'Ask'))).toBe(false);
  });
});

describe('the selection', () => {
  it('is shown as a chip that opens and can be removed', async () => {
    const {element, field, onRemoveSelection} = open({selection: SELECTION});
    expect(element.querySelector('summary')?.textContent).toBe('From your selection (3 words)');
    const details = element.querySelector('details')!;
    expect(details.textContent).not.toContain('moves.');
    await act(async () => {
      details.open = true;
      await vi.waitFor(() => expect(details.textContent).toContain('moves.'));
    });
    expect(field.placeholder).toBe('Ask about your selection …');
    await click(findButton(element, 'remove your selection'));
    expect(onRemoveSelection).toHaveBeenCalledOnce();
    expect(document.activeElement).toBe(field);
  });

  it.each([
    ['formula', '$$\nx\n$$'],
    ['code', '```python\nx = 1\n```'],
  ])('is called %s if it has no words', (kind, text) => {
    const {element} = open({selection: {...SELECTION, text, words: 0}});
    expect(element.querySelector('summary')?.textContent).toBe(`From your selection (${kind})`);
  });

  it('hides the choice of the scope', () => {
    expect(open({selection: SELECTION}).element.querySelector('select')).toBeNull();
  });

  it('is not sent when it is too long, and the reader learns why', () => {
    const {element, field, change, onAsk} = open({
      selection: {...SELECTION, text: 'x'.repeat(20_001)},
    });
    type(field, 'Why?');
    press(field, {key: 'Enter'});
    expect(onAsk).not.toHaveBeenCalled();
    expect(element.querySelector('[role=alert]')?.textContent).toContain('too long');
    change({selection: {...SELECTION, text: 'x'.repeat(20_000)}});
    press(field, {key: 'Enter'});
    expect(onAsk).toHaveBeenCalledWith('Why?');
  });
});

describe('the scope', () => {
  it('is chosen by its label', () => {
    const {element, onScope} = open({scope: 'page'});
    const select = element.querySelector('select')!;
    expect(select.value).toBe('page');
    expect(select.labels?.[0]?.textContent).toContain('Look in');
    select.value = 'module';
    select.dispatchEvent(new Event('change', {bubbles: true}));
    expect(onScope).toHaveBeenCalledWith('module');
  });

  it('is hidden if there is nothing to choose', () => {
    expect(open({scopes: SCOPES.slice(0, 1)}).element.querySelector('select')).toBeNull();
    expect(open({scopes: []}).element.querySelector('select')).toBeNull();
  });
});
