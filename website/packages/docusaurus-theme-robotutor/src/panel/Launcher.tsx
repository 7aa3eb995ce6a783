/** The button on every page. The panel's own code is loaded when a reader needs it. */

import ErrorBoundary from '@docusaurus/ErrorBoundary';
import {useEffect, useMemo, useRef, useState, type ComponentType, type ReactNode} from 'react';
import {useSettings} from '../settings';
import styles from './Launcher.module.css';
import {rememberOpen, wasOpen} from './openState';
import {isShortcut, nameForAria, parseShortcut} from './shortcut';
import type {WidgetProps} from './Widget';
import {words} from './words';

/** The storage has this key while a jump waits for the page, or the tab, that it goes to. */
const PENDING_JUMP = 'robotutor.jump';

/** Shows the button that opens the panel, and the panel after it was opened once. */
export default function Launcher(): ReactNode {
  const settings = useSettings();
  const shortcut = useMemo(
    () => (settings.shortcut ? parseShortcut(settings.shortcut) : null),
    [settings.shortcut],
  );
  const [Widget, setWidget] = useState<ComponentType<WidgetProps> | null>(null);
  const [problem, setProblem] = useState('');
  const [open, setOpen] = useState(false);
  // Counts how often the reader opened the panel; a reload does not count.
  const [opened, setOpened] = useState(0);
  const button = useRef<HTMLButtonElement>(null);
  const loading = useRef(false);

  const load = (quietly: boolean): void => {
    if (loading.current) {
      return;
    }
    loading.current = true;
    import(/* webpackChunkName: "robotutor" */ './Widget').then(
      (module) => {
        setProblem('');
        setWidget(() => module.default);
      },
      () => {
        loading.current = false;
        setOpen(false);
        setProblem(quietly ? '' : words.loadFailed(settings.name));
      },
    );
  };
  const show = (next: boolean): void => {
    setOpen(next);
    rememberOpen(next);
    if (next) {
      setOpened((count) => count + 1);
      load(false);
    }
  };

  useEffect(() => {
    if (wasOpen()) {
      setOpen(true);
      load(true);
    } else if (isJumpPending() || selectsText()) {
      load(true); // a reader may select text before this code runs
    }
    // The state of the tab is read once.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, []);

  useEffect(() => {
    if (Widget) {
      return undefined; // it has its own listeners
    }
    const onKeyDown = (event: KeyboardEvent): void => {
      if (shortcut && isShortcut(event, shortcut)) {
        event.preventDefault();
        show(true);
      }
    };
    const onSelection = (): void => {
      if (selectsText()) {
        load(true);
      }
    };
    document.addEventListener('keydown', onKeyDown);
    document.addEventListener('selectionchange', onSelection);
    return () => {
      document.removeEventListener('keydown', onKeyDown);
      document.removeEventListener('selectionchange', onSelection);
    };
  });

  const panelShown = open && Widget !== null;
  return (
    <>
      <div className={styles.corner} hidden={panelShown} data-robotutor="launcher">
        {problem && (
          <p className={styles.problem} role="alert">
            {problem}
          </p>
        )}
        <button
          ref={button}
          type="button"
          className={styles.launcher}
          aria-expanded={panelShown}
          aria-keyshortcuts={shortcut ? nameForAria(shortcut) : undefined}
          aria-busy={open && !Widget}
          onPointerEnter={() => load(true)}
          onFocus={() => load(true)}
          onClick={() => show(true)}>
          <svg viewBox="0 0 24 24" width="20" height="20" aria-hidden="true">
            <path
              d="M5 4h14a2 2 0 0 1 2 2v9a2 2 0 0 1-2 2h-7l-5 4v-4H5a2 2 0 0 1-2-2V6a2 2 0 0 1 2-2z"
              fill="none"
              stroke="currentColor"
              strokeWidth="2"
              strokeLinejoin="round"
            />
            <path d="M8 9h8M8 12.5h5" stroke="currentColor" strokeWidth="2" strokeLinecap="round" />
          </svg>
          <span className={styles.label}>{words.launcher(settings.name)}</span>
        </button>
      </div>
      {Widget && (
        <ErrorBoundary
          fallback={() => (
            <p className={styles.crashed} role="alert">
              {words.crashed(settings.name)}
            </p>
          )}>
          <Widget
            settings={settings}
            shortcut={shortcut}
            open={open}
            opened={opened}
            onShow={show}
            launcher={button}
          />
        </ErrorBoundary>
      )}
    </>
  );
}

/** Returns true if the reader has selected text in the page's article. */
function selectsText(): boolean {
  const selection = document.getSelection();
  const node = selection?.anchorNode;
  const element = node instanceof Element ? node : node?.parentElement;
  return Boolean(selection && !selection.isCollapsed && element?.closest('article, main'));
}

function isJumpPending(): boolean {
  try {
    return [window.sessionStorage, window.localStorage].some(
      (storage) => storage.getItem(PENDING_JUMP) !== null,
    );
  } catch {
    return false;
  }
}
