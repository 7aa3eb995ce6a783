/** The browser's storage, which a reader may block. Nothing here throws. */

/** The name of the open panel in the session storage. */
export const OPEN_KEY = 'robotutor.open';

/** The name of what the service calls itself in the session storage. */
export const ABOUT_KEY = 'robotutor.about';

/** The name of the conversation in the session storage. */
export const CONVERSATION_KEY = 'robotutor.conversation';

/**
 * The name of jumps that wait for a page to load.
 *
 * The session storage has the jump of this tab, and the local storage those of tabs to be opened.
 */
export const JUMP_KEY = 'robotutor.jump';

/** Returns the storage of the tab or of the site, or null if the browser blocks it. */
export function openStorage(kind: 'session' | 'local'): Storage | null {
  try {
    return kind === 'session' ? window.sessionStorage : window.localStorage;
  } catch {
    return null;
  }
}

/** Returns a stored text, or null if there is none. */
export function readItem(storage: Storage | null, key: string): string | null {
  try {
    return storage?.getItem(key) ?? null;
  } catch {
    return null;
  }
}

/** Returns stored JSON, or null if there is none or if it is spoiled. */
export function readJson(storage: Storage | null, key: string): unknown {
  try {
    return JSON.parse(readItem(storage, key) ?? 'null') as unknown;
  } catch {
    return null;
  }
}

/**
 * Stores a text, or removes it if it is null.
 *
 * If the text does not fit, the earlier one is removed, because an old state would confuse.
 */
export function writeItem(storage: Storage | null, key: string, text: string | null): void {
  try {
    storage?.removeItem(key);
    if (text !== null) {
      storage?.setItem(key, text);
    }
  } catch {
    // Storage is blocked or full.
  }
}
