/** Remembers for the tab if the panel is open. */

const KEY = 'robotutor.open';

/** Returns true if the panel was open before a reload; false if the browser blocks storage. */
export function wasOpen(): boolean {
  try {
    return window.sessionStorage.getItem(KEY) === 'true';
  } catch {
    return false;
  }
}

/** Stores if the panel is open. Without storage, a reload closes the panel. */
export function rememberOpen(open: boolean): void {
  try {
    if (open) {
      window.sessionStorage.setItem(KEY, 'true');
    } else {
      window.sessionStorage.removeItem(KEY);
    }
  } catch {
    // Storage is blocked or full.
  }
}
