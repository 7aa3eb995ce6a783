// The site does not install the types of react-dom.

declare module 'react-dom/client' {
  import type {ReactNode} from 'react';

  export interface Root {
    render(children: ReactNode): void;
    unmount(): void;
  }
  export function createRoot(container: Element): Root;
}

declare module 'react-dom/server' {
  import type {ReactNode} from 'react';

  export function renderToString(children: ReactNode): string;
}
