/** Clicks on the links of an answer. */

import type {MouseEvent} from 'react';
import type {AnswerActions, JumpTarget} from '../conversation/model';
import {saveForNewTab} from '../highlight/pending';

const MIDDLE_BUTTON = 1;

/**
 * Returns the handlers of a link to a passage.
 *
 * A plain click jumps to the passage. Other clicks open a new tab, which highlights it when it has
 * loaded its page.
 */
export function followLink(
  jump: AnswerActions['onJump'],
  readTarget: () => JumpTarget,
): {onClick: (event: MouseEvent) => void; onAuxClick: (event: MouseEvent) => void} {
  return {
    onClick: (event) => {
      if (isPlainClick(event)) {
        event.preventDefault();
        jump(readTarget(), isByKeyboard(event));
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

/** Returns true if a key or an assistive technology made the click, and no mouse or finger. */
export const isByKeyboard = ({detail}: MouseEvent): boolean => detail === 0;
