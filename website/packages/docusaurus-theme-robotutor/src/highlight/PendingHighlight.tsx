import {useEffect, useRef} from 'react';
import {useLocation} from '@docusaurus/router';

import {beginJump, showPassage} from './jump';
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
    if (!target) return;
    const isCurrent = beginJump();
    // Docusaurus renders a loaded page a second time at once.
    void nextFrame()
      .then(nextFrame)
      .then(async () => {
        const options = {isSmooth: false, takesFocus: false};
        if (isCurrent()) await showPassage(target, options, isCurrent);
      });
  }, []);
  return null;
}
