import {useLayoutEffect} from 'react';

/**
 * Makes a panel modal while `active`: the page behind it is inert, so that the focus stays in it.
 *
 * All of that ends before effects of the same commit run, so that these can focus the page.
 */
export function useModal(host: HTMLElement, active: boolean): void {
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
    return () => {
      document.documentElement.style.overflow = overflow;
      style.paddingInlineEnd = padding;
      behind.forEach((element) => {
        element.inert = false;
      });
    };
  }, [active, host]);
}
