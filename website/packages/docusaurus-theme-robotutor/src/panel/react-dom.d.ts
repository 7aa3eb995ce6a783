/** The part of `react-dom` that the panel uses. Its types are not a dependency of a site. */
declare module 'react-dom' {
  export function createPortal(
    children: import('react').ReactNode,
    container: Element,
  ): import('react').ReactPortal;
}
