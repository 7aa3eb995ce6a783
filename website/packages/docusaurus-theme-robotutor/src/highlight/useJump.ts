import {useCallback} from 'react';
import {useHistory} from '@docusaurus/router';
import {useBaseUrlUtils} from '@docusaurus/useBaseUrl';

import type {JumpTarget} from '../conversation/model';
import type {JumpResult} from './jump';
import {jump} from './jump';

/** Returns a function that goes to a place of the site and highlights the passage there. */
export function useJump(): (target: JumpTarget, takesFocus: boolean) => Promise<JumpResult | null> {
  const history = useHistory();
  const {withBaseUrl} = useBaseUrlUtils();
  return useCallback(
    (target, takesFocus) =>
      jump(target, {baseUrl: withBaseUrl('/'), push: (path) => history.push(path)}, takesFocus),
    [history, withBaseUrl],
  );
}
