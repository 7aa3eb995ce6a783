import {useEffect, useRef, type RefObject} from 'react';

/**
 * Keeps the focus in the panel when the button that has it disappears or is disabled.
 *
 * A suggestion, for example, disappears when it is pressed. Without the focus, Escape would no
 * longer close the panel. The panel itself is focused, not its field, because a phone would then
 * show its keyboard over the answer.
 */
export function useKeptFocus(panel: RefObject<HTMLElement | null>, open: boolean): void {
  const inside = useRef(false);

  useEffect(() => {
    const element = panel.current;
    if (!element || !open) {
      return;
    }
    const note = ({target}: Event): void => {
      inside.current = target instanceof Node && element.contains(target);
    };
    // A press beside the panel takes the focus out of it, although nothing else may get the focus.
    document.addEventListener('focusin', note);
    document.addEventListener('pointerdown', note);
    inside.current = element.contains(document.activeElement);
    return () => {
      document.removeEventListener('focusin', note);
      document.removeEventListener('pointerdown', note);
      inside.current = false;
    };
  }, [panel, open]);

  // After every rendering: any of them can remove the element that has the focus.
  useEffect(() => {
    if (open && inside.current && document.activeElement === document.body) {
      panel.current?.focus({preventScroll: true});
    }
  });
}
