import {createFocusTrap} from 'focus-trap';
import {useLayoutEffect, type RefObject} from 'react';

/**
 * Makes a panel modal while `active`: focus stays in it, and the page behind it is inert.
 *
 * All of that ends before effects of the same commit run, so that these can focus the page.
 */
export function useModal(
  panel: RefObject<HTMLElement | null>,
  host: HTMLElement,
  active: boolean,
): void {
  useLayoutEffect(() => {
    if (!active || !panel.current) {
      return undefined;
    }
    const behind = [...document.body.children].filter(
      (element): element is HTMLElement =>
        element instanceof HTMLElement && element !== host && !element.inert,
    );
    behind.forEach((element) => {
      element.inert = true;
    });
    const {style} = document.body;
    const padding = style.paddingInlineEnd;
    // The page behind does not move when its scroll bar goes away.
    style.paddingInlineEnd = `${window.innerWidth - document.documentElement.clientWidth}px`;
    const {overflow} = document.documentElement.style;
    document.documentElement.style.overflow = 'hidden';
    const trap = createFocusTrap(panel.current, {
      initialFocus: false, // the field takes the focus itself
      fallbackFocus: panel.current,
      escapeDeactivates: false,
      returnFocusOnDeactivate: false,
      allowOutsideClick: true,
    });
    trap.activate();
    return () => {
      trap.deactivate();
      document.documentElement.style.overflow = overflow;
      style.paddingInlineEnd = padding;
      behind.forEach((element) => {
        element.inert = false;
      });
    };
  }, [active, host, panel]);
}
