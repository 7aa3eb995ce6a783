import {isSamePage} from '../src/addresses';
import type {JumpTarget} from '../src/conversation/model';
import {jump, type JumpResult} from '../src/highlight/jump';

const push = (path: string): void => window.location.assign(path);

/** Goes to a place of the book: in this tab on the book's own host, or else in a new tab. */
async function goTo(target: JumpTarget, takesFocus: boolean): Promise<JumpResult | null> {
  if (new URL(target.url).origin !== window.location.origin) {
    window.open(target.url, '_blank', 'noopener');
    return null;
  }
  // The browser loads other pages, because the page has no router.
  const baseUrl = isSamePage(target.url, window.location.pathname) ? '/' : 'none';
  return jump(target, {baseUrl, push}, takesFocus);
}

/** Returns the function that goes to a place. */
export const useJump = (): typeof goTo => goTo;
