/** The part of `react-dom/client` that tests use; the site does without its types. */
declare module 'react-dom/client' {
  export interface Root {
    render(node: import('react').ReactNode): void;
    unmount(): void;
  }

  export function createRoot(element: Element): Root;
}
