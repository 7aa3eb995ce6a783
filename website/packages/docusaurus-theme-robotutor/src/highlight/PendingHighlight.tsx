import type {ReactNode} from 'react';

export default function PendingHighlight(): ReactNode {
  return null;
}
