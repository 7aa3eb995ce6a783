import OriginalRoot from '@theme-original/Root';
import type {ReactNode} from 'react';

/** The site's own root around that of the theme, as the README of the theme says. */
export default function Root({children}: {children: ReactNode}): ReactNode {
  return (
    <OriginalRoot>
      <p data-site="root">Opens in spring.</p>
      {children}
    </OriginalRoot>
  );
}
