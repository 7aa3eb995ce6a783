/** A jump that ends on a page that the browser loads anew. */

import type {JumpTarget} from '../conversation/model';

const KEY = 'robotutor.jump';

/** Keeps a jump for the next page. Nothing is kept if the reader blocks storage. */
export function savePending(target: JumpTarget): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(target));
  } catch {
    // The page is shown without a highlight.
  }
}

/** Returns the jump that an earlier page kept, once; `null` if there is none. */
export function takePending(): JumpTarget | null {
  try {
    const kept = sessionStorage.getItem(KEY);
    sessionStorage.removeItem(KEY);
    const target: unknown = JSON.parse(kept ?? 'null');
    if (typeof target !== 'object' || target === null) return null;
    const {url, text} = target as Partial<Record<keyof JumpTarget, unknown>>;
    return typeof url === 'string' && typeof text === 'string' ? {url, text} : null;
  } catch {
    return null;
  }
}
