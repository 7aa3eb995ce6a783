/** The addresses that an answer may link to. */

import type {MouseEvent} from 'react';
import type {JumpTarget} from '../conversation/model';
import {saveForNewTab} from '../highlight/pending';

/** An address of a link: within the site, or somewhere else. */
export interface Address {
  href: string;
  internal: boolean;
}

const MIDDLE_BUTTON = 1;
const BASE = 'https://site.invalid';

/**
 * Returns the address that a link may lead to, or null if the link is dropped.
 *
 * Only `http:`, `https:` and `mailto:` are kept, and paths from the root of the site. A relative
 * path is dropped, because it is relative to a page that the reader may not be on.
 */
export function readAddress(url: string, origin: string): Address | null {
  let parsed: URL;
  try {
    parsed = new URL(url, BASE);
  } catch {
    return null;
  }
  const isWeb = /^https?:$/.test(parsed.protocol);
  if (isWeb && (parsed.origin === BASE || parsed.origin === origin)) {
    const fromRoot = url.startsWith('/') || parsed.origin !== BASE;
    // A second slash after the first one would name another host once the address is used.
    const path = `${parsed.pathname}${parsed.search}${parsed.hash}`;
    return fromRoot && !path.startsWith('//') ? {href: path, internal: true} : null;
  }
  if (parsed.protocol === 'mailto:') {
    return {href: parsed.href, internal: false};
  }
  return isWeb && /^https?:\/\//i.test(url) ? {href: parsed.href, internal: false} : null;
}

/**
 * Returns the handlers of a link to a passage.
 *
 * A plain click jumps to the passage. Other clicks open a new tab, which highlights it when it has
 * loaded its page.
 */
export function followLink(
  jump: (target: JumpTarget) => void,
  readTarget: () => JumpTarget,
): {onClick: (event: MouseEvent) => void; onAuxClick: (event: MouseEvent) => void} {
  return {
    onClick: (event) => {
      if (isPlainClick(event)) {
        event.preventDefault();
        jump(readTarget());
      } else if (!event.defaultPrevented && !event.altKey) {
        saveForNewTab(readTarget());
      }
    },
    onAuxClick: (event) => {
      if (event.button === MIDDLE_BUTTON && !event.defaultPrevented) {
        saveForNewTab(readTarget());
      }
    },
  };
}

/** Returns true for a click that opens a link here, and not in a new tab or window. */
export function isPlainClick(event: MouseEvent): boolean {
  const {altKey, button, ctrlKey, defaultPrevented, metaKey, shiftKey} = event;
  return button === 0 && !altKey && !ctrlKey && !metaKey && !shiftKey && !defaultPrevented;
}
