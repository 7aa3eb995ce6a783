import type {ReactNode} from 'react';
import type {Selection} from '../conversation/model';

export function AskAboutThis(_: {onAsk: (selection: Selection) => void}): ReactNode {
  return null;
}
