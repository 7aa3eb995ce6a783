import type {ReactNode} from 'react';

/** Shows the elements of a page's head where they are written, so that tests can find them. */
export default function Head({children}: {children?: ReactNode}): ReactNode {
  return <>{children}</>;
}
