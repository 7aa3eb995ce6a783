/** Keyboard shortcuts such as `mod+i`. */

/** A key with its modifiers. `mod` is Ctrl, on a Mac Command. */
export interface Shortcut {
  key: string;
  mod: boolean;
  ctrl: boolean;
  alt: boolean;
  shift: boolean;
}

const MODIFIERS = ['mod', 'ctrl', 'alt', 'shift'] as const;

/**
 * Keys that no browser reserves together with only Ctrl or Command. Firefox's own use of Ctrl+I,
 * a page's properties, gives way to the page.
 */
const FREE = 'i/.;';

/** Reads a shortcut. Throws an error that says what is wrong with it. */
export function parseShortcut(text: string): Shortcut {
  const parts = text.toLowerCase().split('+').map((part) => part.trim());
  const key = parts.pop() ?? '';
  if (!/^[a-z0-9/.,;]$/.test(key)) {
    throw new Error(`"${text}" must end with one letter, digit or / . , ; for example "mod+i".`);
  }
  const unknown = parts.find((part) => !(MODIFIERS as readonly string[]).includes(part));
  if (unknown !== undefined) {
    throw new Error(`"${unknown}" in "${text}" is not one of ${MODIFIERS.join(', ')}.`);
  }
  const has = (name: string): boolean => parts.includes(name);
  if (!has('mod') && !has('ctrl') && !has('alt')) {
    throw new Error(`"${text}" needs mod, ctrl or alt. A plain letter would open it while typing.`);
  }
  if (!has('alt') && !has('shift') && !FREE.includes(key)) {
    throw new Error(`"${text}" is used by browsers or by the site's search. Try "mod+i".`);
  }
  return {key, mod: has('mod'), ctrl: has('ctrl'), alt: has('alt'), shift: has('shift')};
}

/** Returns true if a key press is the shortcut, in any keyboard layout. */
export function isShortcut(event: KeyboardEvent, shortcut: Shortcut, mac = isMac()): boolean {
  const ctrl = shortcut.ctrl || (shortcut.mod && !mac);
  return (
    !event.isComposing &&
    !event.repeat &&
    event.ctrlKey === ctrl &&
    event.metaKey === (shortcut.mod && mac) &&
    event.altKey === shortcut.alt &&
    event.shiftKey === shortcut.shift &&
    namesKey(event, shortcut.key)
  );
}

/** Returns the shortcut in the words of the reader's keyboard, for example `Ctrl+I` or `⌘I`. */
export function describeShortcut({key, mod, ctrl, alt, shift}: Shortcut, mac = isMac()): string {
  const names = mac
    ? [ctrl && '⌃', alt && '⌥', shift && '⇧', mod && '⌘']
    : [(ctrl || mod) && 'Ctrl', alt && 'Alt', shift && 'Shift'];
  return [...names.filter(Boolean), key.toUpperCase()].join(mac ? '' : '+');
}

/** Returns the value of `aria-keyshortcuts`. It names both systems, so it needs no browser. */
export function nameForAria(shortcut: Shortcut): string {
  const name = (mac: boolean): string =>
    [
      (shortcut.ctrl || (shortcut.mod && !mac)) && 'Control',
      shortcut.mod && mac && 'Meta',
      shortcut.alt && 'Alt',
      shortcut.shift && 'Shift',
      shortcut.key.toUpperCase(),
    ]
      .filter(Boolean)
      .join('+');
  return [...new Set([name(false), name(true)])].join(' ');
}

/** The key's letter; with a non-Latin layout or Alt on a Mac, the letter printed on the key. */
function namesKey(event: KeyboardEvent, key: string): boolean {
  const typed = event.key.toLowerCase();
  return (
    typed === key || (!/^[a-z]$/.test(typed) && event.code.toLowerCase() === `key${key}`)
  );
}

function isMac(): boolean {
  return typeof navigator !== 'undefined' && /Mac|iPhone|iPad/.test(navigator.platform);
}
