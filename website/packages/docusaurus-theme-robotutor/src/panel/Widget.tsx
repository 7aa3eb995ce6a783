/** Everything that is loaded when a reader first needs RoboTutor. */

import {useLocation} from '@docusaurus/router';
import {useEffect, useLayoutEffect, useRef, useState, type ReactNode, type RefObject} from 'react';
import {createPortal} from 'react-dom';
import type {JumpTarget, Selection} from '../conversation/model';
import {PendingHighlight} from '../highlight/PendingHighlight';
import type {JumpResult} from '../highlight/jump';
import {nextFrame} from '../highlight/reveal';
import {useJump} from '../highlight/useJump';
import {AskAboutThis} from '../selection/AskAboutThis';
import {currentSelection} from '../selection/readSelection';
import type {Settings} from '../settings';
import type {AskedByLink} from './askLink';
import {BackToAnswer} from './BackToAnswer';
import ColorMode from './ColorMode';
import Panel from './Panel';
import {isShortcut, type Shortcut} from './shortcut';
import {useLayout} from './useLayout';

export interface WidgetProps {
  settings: Settings;
  shortcut: Shortcut | null;
  /** True while the panel is visible. */
  open: boolean;
  /** How often the reader opened the panel. */
  opened: number;
  /** The question of the page's address; null without one. */
  asked: AskedByLink | null;
  onShow: (open: boolean) => void;
  launcher: RefObject<HTMLButtonElement | null>;
}

/** Shows the panel, the button next to a selection, and the passage that a jump went to. */
export default function Widget(props: WidgetProps): ReactNode {
  const {settings, shortcut, open, opened, asked, onShow, launcher} = props;
  const [host, setHost] = useState<HTMLElement | null>(null);
  const [selection, setSelection] = useState<Selection | null>(null);
  // Asks the field to take the focus each time it changes.
  const [focusKey, setFocusKey] = useState(0);
  // True after a jump from a sheet, which hides the answer, until the panel is opened again.
  const [left, setLeft] = useState(false);
  const layout = useLayout(open);
  const jump = useJump();
  const {pathname} = useLocation();
  const focusLauncher = useRef(false);

  useLayoutEffect(() => {
    const element = document.createElement('div');
    element.dataset.robotutor = 'host';
    document.body.append(element);
    setHost(element);
    return () => element.remove();
  }, []);

  // The first selection is older than the listeners below, which this code brought along.
  useEffect(() => {
    document.dispatchEvent(new Event('selectionchange'));
  }, []);

  useEffect(() => {
    setLeft(false);
    if (opened > 0) {
      const selected = currentSelection(pathname);
      setSelection((before) => selected ?? before);
      setFocusKey((key) => key + 1);
    }
    // Going to another page does not open the panel.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [opened]);

  // The button is hidden while the panel is open, so it gets the focus after the next commit.
  useEffect(() => {
    if (!open && focusLauncher.current) {
      focusLauncher.current = false;
      launcher.current?.focus({preventScroll: true});
    }
  }, [open, launcher]);

  const close = (): void => {
    const active = document.activeElement;
    focusLauncher.current = !active || active === document.body || Boolean(host?.contains(active));
    onShow(false);
  };
  const ask = (selected: Selection): void => {
    setSelection(selected);
    onShow(true);
  };
  const goTo = async (target: JumpTarget, byKeyboard: boolean): Promise<JumpResult | null> => {
    const hidesPlace = layout === 'sheet';
    if (hidesPlace) {
      onShow(false);
      setLeft(true);
      // By then the page is drawn without the sheet.
      await nextFrame();
      await nextFrame();
    }
    return jump(target, byKeyboard || hidesPlace);
  };

  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      if (shortcut && isShortcut(event, shortcut)) {
        event.preventDefault();
        const selected = open ? currentSelection(pathname) : null;
        if (selected && selected.text !== selection?.text) {
          ask(selected);
        } else if (open) {
          close();
        } else {
          onShow(true);
        }
      }
    };
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  });

  return (
    <>
      <PendingHighlight />
      {!(open && layout === 'sheet') && <AskAboutThis onAsk={ask} />}
      {left && !open && <BackToAnswer onBack={() => onShow(true)} />}
      {host &&
        createPortal(
          <ColorMode>
            <Panel
              settings={settings}
              shortcut={shortcut}
              host={host}
              open={open}
              layout={layout}
              focusKey={focusKey}
              selection={selection}
              asked={asked}
              onRemoveSelection={() => setSelection(null)}
              onJump={goTo}
              onClose={close}
            />
          </ColorMode>,
          host,
        )}
    </>
  );
}
