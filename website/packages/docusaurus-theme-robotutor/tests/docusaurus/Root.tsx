import type {ReactNode} from 'react';

/** Docusaurus's own root, which adds nothing. */
export default function Root({children}: {children: ReactNode}): ReactNode {
  return <>{children}</>;
}
