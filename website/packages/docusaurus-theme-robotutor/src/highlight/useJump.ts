import {useHistory} from '@docusaurus/router';
import type {JumpTarget} from '../conversation/model';

export function useJump(): (target: JumpTarget) => Promise<'highlighted' | 'section' | 'page'> {
  const history = useHistory();
  return (target) => {
    history.push(target.url);
    return Promise.resolve('page');
  };
}
