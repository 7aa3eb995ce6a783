/** The place of the control next to selected text. */

/** Pixels from the top left corner of the window. */
export interface Place {
  x: number;
  y: number;
}

/** The size of something in pixels. */
interface Size {
  width: number;
  height: number;
}

const GAP_PX = 8;
// A touch screen shows handles below the selection.
const HANDLES_PX = 28;

/**
 * Returns the place for a control next to a selection.
 *
 * The control is below the last line, so that it covers neither the heading above nor, on a touch
 * screen, the system's own menu. If there is no room, it is above.
 *
 * @param first - The selection's first line.
 * @param last - The selection's last line.
 * @param control - The size of the control.
 * @param view - The part of the window that shows the article.
 * @returns `null` if the selection is not in view.
 */
export function placeControl(
  first: DOMRectReadOnly,
  last: DOMRectReadOnly,
  control: Size,
  view: {top: number; bottom: number; width: number},
  isTouch: boolean,
): Place | null {
  if (last.bottom < view.top || first.top > view.bottom) return null;
  const above = first.top - control.height - GAP_PX;
  const below = last.bottom + (isTouch ? HANDLES_PX : GAP_PX);
  const lowest = view.bottom - control.height - GAP_PX;
  const isAbove = below > lowest && above >= view.top;
  const x = isAbove ? first.left : last.right - control.width;
  const y = isAbove ? above : below;
  return {
    x: Math.max(GAP_PX, Math.min(x, view.width - control.width - GAP_PX)),
    y: Math.max(view.top + GAP_PX, Math.min(y, lowest)),
  };
}
