import type {ReactNode} from 'react';
// `@theme-original` would be this component again: in a package it means the last theme's.
import InitRoot from '@theme-init/Root';
import Launcher from '../../panel/Launcher';

/** The whole site with the panel's button, which stays when the reader goes to another page. */
export default function Root({children}: {children: ReactNode}): ReactNode {
  return (
    <InitRoot>
      {children}
      <Launcher />
    </InitRoot>
  );
}
