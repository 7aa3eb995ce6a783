import type {ReactNode} from 'react';
import {readAddress} from '../addresses';
import {useLinks} from './AnswerContext';
import {followLink} from './links';
import {useBookUrl} from './useBookUrl';

/** A link in the text of an answer. It stays text if its address is not safe. */
export function AnswerLink({children, href}: {children: ReactNode; href: string}): ReactNode {
  const {latest} = useLinks();
  const toBookUrl = useBookUrl();
  const address = readAddress(href, window.location.origin);
  if (!address || !latest.current) {
    return children;
  }
  if (!address.internal) {
    return (
      <a href={address.href} rel="noopener nofollow" target="_blank">
        {children}
      </a>
    );
  }
  const url = toBookUrl(address.href);
  return (
    <a
      href={url}
      {...followLink(
        (target, byKeyboard) => latest.current.actions.onJump(target, byKeyboard),
        () => ({url, text: ''}),
      )}>
      {children}
    </a>
  );
}
