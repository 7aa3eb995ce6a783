import {useLayoutEffect, type RefObject} from 'react';

const STOPS = 'a[href], button:not(:disabled), input, select, summary, textarea, [tabindex]';

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
    if (!active) {
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
    const onKeyDown = (event: KeyboardEvent): void => keepFocus(event, panel.current);
    document.addEventListener('keydown', onKeyDown);
    return () => {
      document.removeEventListener('keydown', onKeyDown);
      document.documentElement.style.overflow = overflow;
      style.paddingInlineEnd = padding;
      behind.forEach((element) => {
        element.inert = false;
      });
    };
  }, [active, host, panel]);
}

/** Leads Tab from the last control of a panel to the first one, and back. */
function keepFocus(event: KeyboardEvent, panel: HTMLElement | null): void {
  if (event.key !== 'Tab' || !panel) {
    return;
  }
  const stops = [...panel.querySelectorAll<HTMLElement>(STOPS)].filter(
    (element) => element.tabIndex >= 0 && element.getClientRects().length > 0,
  );
  const focused = document.activeElement;
  const [first, last] = [stops[0], stops.at(-1)];
  const isEdge = focused === panel ? event.shiftKey : focused === (event.shiftKey ? first : last);
  if (isEdge || !panel.contains(focused)) {
    event.preventDefault();
    (event.shiftKey ? last : first)?.focus();
  }
}
