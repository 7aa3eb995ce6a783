/** Waits until the site's router has rendered another page. */

import {findArticle} from '../article';

/** Waits until a condition holds, or until the time is over. */
function waitUntil(holds: () => boolean, limitMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    if (holds()) {
      resolve(true);
      return;
    }
    const finish = (result: boolean): void => {
      observer.disconnect();
      clearTimeout(timer);
      resolve(result);
    };
    const observer = new MutationObserver(() => {
      if (holds()) finish(true);
    });
    observer.observe(document, {childList: true, subtree: true, characterData: true});
    const timer = setTimeout(() => finish(holds()), limitMs);
  });
}

const readTitles = (): string =>
  `${document.title}\n${document.querySelector('main h1')?.textContent ?? ''}`;

/**
 * Remembers the page that is shown.
 *
 * The address changes before the new page is loaded, so the page itself is compared.
 *
 * @returns A function that waits for another page. It returns false if none comes in time.
 */
export function watchPage(): (limitMs: number) => Promise<boolean> {
  const titles = readTitles();
  const last = findArticle()?.lastElementChild ?? null;
  const isOther = (): boolean =>
    findArticle() !== null && (readTitles() !== titles || (last !== null && !last.isConnected));
  return (limitMs) => waitUntil(isOther, limitMs);
}
