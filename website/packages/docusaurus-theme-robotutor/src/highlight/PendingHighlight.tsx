import {useEffect, useRef} from 'react';
import {useLocation} from '@docusaurus/router';

import {showPassage} from './jump';
import {normalizePath, parseUrl} from './pageChange';
import {removeHighlight} from './paint';
import {takePending} from './pending';
import {nextFrame} from './reveal';

/**
 * Ends a jump after the browser has loaded its page, and removes the highlight when the reader
 * leaves the page.
 *
 * Renders nothing. It is mounted once on each page.
 */
export function PendingHighlight(): null {
  const {pathname} = useLocation();
  const shownOn = useRef(pathname);
  useEffect(() => {
    if (shownOn.current !== pathname) removeHighlight();
    shownOn.current = pathname;
  }, [pathname]);
  useEffect(() => {
    const target = takePending();
    const url = target && parseUrl(target.url);
    if (!url || normalizePath(url.pathname) !== normalizePath(window.location.pathname)) return;
    // Docusaurus renders a loaded page a second time at once.
    void nextFrame()
      .then(nextFrame)
      .then(() => showPassage(target, false));
  }, []);
  return null;
}
