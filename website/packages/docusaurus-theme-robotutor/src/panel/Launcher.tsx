/** The button on every page. The panel's own code is loaded when a reader needs it. */

import ErrorBoundary from '@docusaurus/ErrorBoundary';
import {useLocation} from '@docusaurus/router';
import useDocusaurusContext from '@docusaurus/useDocusaurusContext';
import {useEffect, useMemo, useRef, useState, type ComponentType, type ReactNode} from 'react';
import {useSettings} from '../settings';
import {JUMP_KEY, OPEN_KEY, openStorage, readItem, writeItem} from '../storage';
import {dropAskLink, readAskLink, type AskedByLink} from './askLink';
import styles from './Launcher.module.css';
import {isShortcut, nameForAria, parseShortcut} from './shortcut';
import type {WidgetProps} from './Widget';
import {words} from './words';

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
  const [asked, setAsked] = useState<AskedByLink | null>(null);
  const {search} = useLocation();
  const {title} = useDocusaurusContext().siteConfig;
  const button = useRef<HTMLButtonElement>(null);
  const loading = useRef(false);
  // True if the reader asked for the panel. A load that began unasked, such as by the touch before
  // a tap, then fails with a message as well.
  const wanted = useRef(false);

  const load = (quietly: boolean): void => {
    wanted.current ||= !quietly;
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
        setProblem(wanted.current ? words.loadFailed(settings.name) : '');
        wanted.current = false;
      },
    );
  };
  const show = (next: boolean): void => {
    setOpen(next);
    writeItem(openStorage('session'), OPEN_KEY, next ? 'true' : null);
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
    if (settings.webMcp && ('modelContext' in document || 'modelContext' in navigator)) {
      void import(/* webpackChunkName: "robotutor-tools" */ '../webmcp/registerTools').then(
        ({registerTools}) => registerTools(settings, title),
        () => undefined, // the page works without its tools
      );
    }
    // The browser keeps the tools until the page is left.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, []);

  useEffect(() => {
    const found = readAskLink(search);
    if (found) {
      const {pathname, hash} = window.location;
      window.history.replaceState(
        window.history.state,
        '',
        pathname + dropAskLink(search) + hash,
      );
      setAsked(found);
      show(true);
    }
    // A link asks once.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [search]);

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

  const isAway = useScrollsDown();
  const panelShown = open && Widget !== null;
  return (
    <>
      <div
        className={styles.corner}
        hidden={panelShown}
        data-away={isAway || undefined}
        data-robotutor="launcher">
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
            asked={asked}
            onShow={show}
            launcher={button}
          />
        </ErrorBoundary>
      )}
    </>
  );
}

/** Returns true while the reader scrolls down, and until the reader scrolls up again. */
function useScrollsDown(): boolean {
  const [isDown, setIsDown] = useState(false);
  useEffect(() => {
    let last = window.scrollY;
    const onScroll = (): void => {
      const {scrollY} = window;
      if (Math.abs(scrollY - last) > 8) {
        setIsDown(scrollY > last && scrollY > 100);
        last = scrollY;
      }
    };
    window.addEventListener('scroll', onScroll, {passive: true});
    return () => window.removeEventListener('scroll', onScroll);
  }, []);
  return isDown;
}

/** Returns true if the reader has selected text in the page's article. */
function selectsText(): boolean {
  const selection = document.getSelection();
  const node = selection?.anchorNode;
  const element = node instanceof Element ? node : node?.parentElement;
  return Boolean(selection && !selection.isCollapsed && element?.closest('article, main'));
}

/** Returns true if the panel was open before a reload. */
const wasOpen = (): boolean => readItem(openStorage('session'), OPEN_KEY) === 'true';

/** Returns true if a jump waits for this page, or for a new tab. */
const isJumpPending = (): boolean =>
  (['session', 'local'] as const).some((kind) => readItem(openStorage(kind), JUMP_KEY) !== null);
