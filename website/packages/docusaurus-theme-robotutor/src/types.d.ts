/// <reference types="@docusaurus/module-type-aliases" />

declare module 'react-dom' {
  import type {ReactNode, ReactPortal} from 'react';

  export function createPortal(children: ReactNode, container: Element): ReactPortal;
}
