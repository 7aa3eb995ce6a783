import {describe, expect, it} from 'vitest';
import {describeShortcut, isShortcut, nameForAria, parseShortcut} from '../../src/panel/shortcut';

const press = (init: Partial<KeyboardEvent>): KeyboardEvent =>
  ({
    key: '', code: '', ctrlKey: false, metaKey: false, altKey: false, shiftKey: false,
    isComposing: false, repeat: false, ...init,
  }) as KeyboardEvent;

describe('a shortcut', () => {
  const shortcut = parseShortcut('mod+i');

  it('is Ctrl on most systems and Command on a Mac', () => {
    expect(isShortcut(press({key: 'i', ctrlKey: true}), shortcut, false)).toBe(true);
    expect(isShortcut(press({key: 'i', metaKey: true}), shortcut, false)).toBe(false);
    expect(isShortcut(press({key: 'i', metaKey: true}), shortcut, true)).toBe(true);
    expect(isShortcut(press({key: 'i', ctrlKey: true}), shortcut, true)).toBe(false);
  });

  it('works with caps lock and with a keyboard that has no Latin letters', () => {
    expect(isShortcut(press({key: 'I', ctrlKey: true}), shortcut, false)).toBe(true);
    expect(isShortcut(press({key: 'ш', code: 'KeyI', ctrlKey: true}), shortcut, false)).toBe(true);
  });

  it('follows the letter, not the place, in a Latin layout', () => {
    const press1 = press({key: 'u', code: 'KeyI', ctrlKey: true});
    expect(isShortcut(press1, shortcut, false)).toBe(false);
  });

  it.each([
    ['a further modifier', {key: 'I', ctrlKey: true, shiftKey: true}],
    ['no modifier', {key: 'i'}],
    ['AltGr, which browsers report as Ctrl and Alt', {key: 'i', ctrlKey: true, altKey: true}],
    ['an input method', {key: 'i', ctrlKey: true, isComposing: true}],
    ['a held key', {key: 'i', ctrlKey: true, repeat: true}],
  ])('is not pressed with %s', (_name, init) => {
    expect(isShortcut(press(init), shortcut, false)).toBe(false);
  });

  it('is described as the keyboard shows it', () => {
    expect(describeShortcut(shortcut, false)).toBe('Ctrl+I');
    expect(describeShortcut(shortcut, true)).toBe('⌘I');
    expect(nameForAria(shortcut)).toBe('Control+I Meta+I');
    expect(nameForAria(parseShortcut('ctrl+alt+r'))).toBe('Control+Alt+R');
  });
});

describe('parseShortcut', () => {
  it.each([
    ['mod+k', 'used by browsers'],
    ['ctrl+t', 'used by browsers'],
    ['i', 'needs mod, ctrl or alt'],
    ['shift+i', 'needs mod, ctrl or alt'],
    ['mod+', 'must end with one letter'],
    ['mod+enter', 'must end with one letter'],
    ['cmd+i', '"cmd"'],
  ])('refuses %s and says why', (text, reason) => {
    expect(() => parseShortcut(text)).toThrow(reason);
  });

  it('accepts keys of the browser with a further modifier', () => {
    expect(parseShortcut('Mod+Shift+K')).toMatchObject({key: 'k', mod: true, shift: true});
  });
});
