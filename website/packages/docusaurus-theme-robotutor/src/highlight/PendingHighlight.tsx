import type {ReactNode} from 'react';

export function PendingHighlight(): ReactNode {
  return null;
}
