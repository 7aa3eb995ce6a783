import type {ReactNode} from 'react';
import type {Turn} from '../conversation/model';

export default function Rating(_: {
  turn: Turn;
  onRate: (rating: 'up' | 'down', note?: string) => Promise<boolean>;
}): ReactNode {
  return null;
}
