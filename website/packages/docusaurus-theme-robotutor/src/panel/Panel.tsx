/** The panel with the conversation. */

import {useEffect, useMemo, useRef, useState, type KeyboardEvent, type ReactNode} from 'react';
import {loadMarkdown} from '../answer/AnswerText';
import {loadFormulas} from '../answer/useFormulas';
import {AskingContext} from '../compose/AskButton';
import {Composer} from '../compose/Composer';
import type {ScopeId} from '../compose/ScopeChoice';
import type {AnswerActions, JumpTarget, Selection} from '../conversation/model';
import {sayRetry} from '../conversation/outcome';
import {useConversation} from '../conversation/useConversation';
import type {JumpResult} from '../highlight/jump';
import type {Settings} from '../settings';
import {askAbout} from './askAbout';
import {useAnnouncement, type Said} from './announcement';
import Empty from './Empty';
import Header from './Header';
import {takeOffer} from './offers';
import styles from './Panel.module.css';
import {describeShortcut, type Shortcut} from './shortcut';
import Unavailable from './Unavailable';
import {findSearch, openSearch} from './siteSearch';
import {makeFilters, useBook} from './useBook';
import {useScope} from './useScope';
import {useFollow} from './useFollow';
import type {AskedByLink} from './askLink';
import type {Layout} from './useLayout';
import {useLoaded} from './useLoaded';
import {useKeptFocus} from './useKeptFocus';
import {useModal} from './useModal';
import {words} from './words';

interface Props {
  settings: Settings;
  shortcut: Shortcut | null;
  /** The element outside of the page in which the panel is. */
  host: HTMLElement;
  open: boolean;
  layout: Layout;
  focusKey: number;
  selection: Selection | null;
  /** The question of the page's address, which is asked once. */
  asked: AskedByLink | null;
  onRemoveSelection: () => void;
  onJump: (target: JumpTarget, byKeyboard: boolean) => Promise<JumpResult | null>;
  onClose: () => void;
}

/**
 * Loads the code that draws answers. It is larger than the rest, so the panel is shown before.
 *
 * It is not loaded as late as with the first question, because a reader may be offline by then.
 */
const loadTurnList = async () =>
  (await import(/* webpackChunkName: "robotutor-answers" */ './TurnList')).default;

/** Shows the conversation beside the page or over it. It keeps its state while it is closed. */
export default function Panel(props: Props): ReactNode {
  const {settings, shortcut, host, open, layout, focusKey, selection, asked} = props;
  const {onRemoveSelection, onJump, onClose} = props;
  const panel = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const conversation = useConversation(settings);
  const {turns, busy, waitS, ask, rate} = conversation;
  const book = useBook(settings, open);
  const {scope, scopes, choose, afterLoading} = useScope(book);
  const {loaded: TurnList, failed, retry} = useLoaded(loadTurnList, open || turns.length > 0);
  const follow = useFollow(list, turns);
  const [said, say] = useAnnouncement(turns, settings.name, open);
  const sheet = layout === 'sheet';
  useModal(panel, host, open && sheet);
  useKeptFocus(panel, open);

  useEffect(() => {
    if (open) {
      void askAbout(settings);
    }
  }, [open, settings]);

  // What draws answers loads with the panel, so that no answer shows raw Markdown first.
  useEffect(() => {
    if (open) {
      loadMarkdown().catch(() => undefined);
      loadFormulas().catch(() => undefined);
    }
  }, [open]);

  const [hasSearch, setHasSearch] = useState(false);
  useEffect(() => setHasSearch(findSearch() !== null), [open]);
  const search = (question: string): void => {
    if (sheet) {
      onClose();
    }
    requestAnimationFrame(() => requestAnimationFrame(() => openSearch(question)));
  };

  const latest = {conversation, onJump, search};
  const now = useRef(latest);
  useEffect(() => {
    now.current = latest;
  });
  // The actions stay the same, so that a turn is drawn again only when it changes.
  const actions = useMemo<AnswerActions>(
    () => ({
      onJump: (target, byKeyboard) => {
        void now.current.onJump(target, byKeyboard).then((shown) => {
          if (shown) say(describeJump(shown));
        });
      },
      onOffer: (turn, offer) => now.current.conversation.ask(takeOffer(turn.asked, offer)),
      onRetry: (turn) => now.current.conversation.retry(turn),
      onAsk: (asked) => now.current.conversation.ask(asked),
      onShowPassages: () => now.current.conversation.showPassages(),
      onSearch: hasSearch ? (question) => now.current.search(question) : null,
    }),
    [say, hasSearch],
  );
  const asking = useMemo(() => ({canAsk: !busy && waitS === 0, waitS}), [busy, waitS]);
  const askIn = (part: ScopeId, question: string): void => {
    const pageUrl = window.location.pathname;
    afterLoading(part, (page) => ask({question, filters: makeFilters(part, page), pageUrl}));
  };
  const submit = (question: string): void =>
    selection ? ask({question, selection}) : askIn(scope, question);
  const askedBefore = useRef<AskedByLink | null>(null);
  useEffect(() => {
    if (asked && askedBefore.current !== asked) {
      askedBefore.current = asked;
      // The same link again shows the answer that is there.
      if (turns.at(-1)?.asked.question !== asked.question) {
        askIn(asked.scope, asked.question);
      }
    }
  });
  const onKeyDown = (event: KeyboardEvent): void => {
    const composing = event.nativeEvent.isComposing || event.keyCode === 229;
    if (event.key === 'Escape' && !event.defaultPrevented && !composing) {
      event.stopPropagation();
      onClose();
    }
  };

  return (
    <AskingContext.Provider value={asking}>
      {open && sheet && <div className={styles.backdrop} onClick={onClose} />}
      <div
        ref={panel}
        className={styles.panel}
        role={sheet ? 'dialog' : 'complementary'}
        aria-modal={sheet || undefined}
        aria-label={settings.name}
        data-robotutor="panel"
        data-open={open}
        data-layout={layout}
        tabIndex={-1}
        onKeyDown={onKeyDown}>
        <Header
          name={settings.name}
          shortcut={shortcut && describeShortcut(shortcut)}
          canClear={turns.length > 0}
          onClear={conversation.clear}
          onClose={onClose}
        />
        <div
          ref={list}
          className={styles.list}
          role="region"
          aria-label={words.conversation()}
          tabIndex={0}>
          <div className={styles.turns}>
            {turns.length === 0 && (
              <Empty
                settings={settings}
                book={book}
                onAsk={askIn}
                onUndo={conversation.canUndo ? conversation.undo : null}
              />
            )}
            {TurnList && <TurnList turns={turns} actions={actions} onRate={rate} />}
            {failed && turns.length > 0 && <LoadFailed name={settings.name} onRetry={retry} />}
            {turns.length === 0 && book.failed && (
              <Unavailable name={settings.name} onLeave={sheet ? onClose : () => {}} />
            )}
          </div>
        </div>
        <div className={styles.footer}>
          {follow.behind && (
            <button type="button" className={styles.latest} onClick={follow.jump}>
              {words.latest()}
            </button>
          )}
          <Composer
            busy={busy}
            waitS={waitS}
            selection={selection}
            scope={scope}
            scopes={scopes}
            onScope={choose}
            onRemoveSelection={onRemoveSelection}
            onAsk={submit}
            onStop={conversation.stop}
            autoFocusKey={focusKey || undefined}
          />
          <p className={styles.smallPrint}>{words.smallPrint()}</p>
        </div>
        <Spoken said={said?.inPanel ? said : null} />
      </div>
      <Spoken said={said?.inPanel ? null : said} />
    </AskingContext.Provider>
  );
}

/** A live region. A new element, even with the same words, is said. */
function Spoken({said}: {said: Said | null}): ReactNode {
  return (
    <p className={styles.spoken} role="status" aria-live="polite">
      {said && <span key={said.id}>{said.text}</span>}
    </p>
  );
}

function LoadFailed({name, onRetry}: {name: string; onRetry: () => void}): ReactNode {
  return (
    <div className={styles.unavailable} role="alert">
      <p>{words.loadFailed(name)}</p>
      <button type="button" className={styles.quietButton} onClick={onRetry}>
        {sayRetry()}
      </button>
    </div>
  );
}

function describeJump(shown: JumpResult): string {
  switch (shown) {
    case 'highlighted':
      return words.highlighted();
    case 'section':
      return words.shownSection();
    default:
      return words.shownPage();
  }
}
