import {useLayoutEffect, useSyncExternalStore} from 'react';

/** `side`: beside the page, which makes room. `sheet`: over the page. */
export type Layout = 'side' | 'sheet';

/** From this width on, the panel leaves enough room for the sidebar and a column of text. */
const WIDE = '(min-width: 1200px)';

/**
 * Returns where the panel is, by the width of the window.
 *
 * While it is open, `<html>` has the attribute `data-robotutor-layout`, on which style sheets make room.
 * `data-robotutor` would say that the whole page is part of the panel.
 */
export function useLayout(open: boolean): Layout {
  const wide = useSyncExternalStore(
    (onChange) => {
      const media = window.matchMedia(WIDE);
      media.addEventListener('change', onChange);
      return () => media.removeEventListener('change', onChange);
    },
    () => window.matchMedia(WIDE).matches,
    () => false,
  );
  const layout = wide ? 'side' : 'sheet';
  useLayoutEffect(() => {
    const root = document.documentElement;
    if (!open) {
      return undefined;
    }
    root.dataset.robotutorLayout = layout;
    return () => {
      delete root.dataset.robotutorLayout;
    };
  }, [open, layout]);
  return layout;
}
