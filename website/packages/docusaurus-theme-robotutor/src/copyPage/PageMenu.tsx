import {useEffect, useId, useRef, useState, type KeyboardEvent, type ReactNode} from 'react';
import {translate} from '@docusaurus/Translate';
import useDocusaurusContext from '@docusaurus/useDocusaurusContext';
import {nameSource} from '../about';
import {CopyButton} from '../clipboard/CopyButton';
import {copyText} from '../clipboard/copyText';
import {useSettings} from '../settings';
import {describeServer, linkChats, linkEditors, writeClaudeCommand} from './agentLinks';
import styles from './styles.module.css';

const words = {
  more: () =>
    translate({id: 'theme.robotutor.copyPage.more', message: 'Other ways to use this page'}),
  view: () => translate({id: 'theme.robotutor.copyPage.view', message: 'View as Markdown'}),
  openIn: (name: string) =>
    translate({id: 'theme.robotutor.copyPage.openIn', message: 'Open in {name}'}, {name}),
  prompt: (url: string) =>
    translate(
      {
        id: 'theme.robotutor.copyPage.prompt',
        message: 'Read {url} and answer my questions about it.',
      },
      {url},
    ),
  connect: () =>
    nameSource(translate({id: 'theme.robotutor.copyPage.connect', message: 'Connect this book'})),
  connectTo: (name: string) =>
    translate({id: 'theme.robotutor.copyPage.connectTo', message: 'Connect to {name}'}, {name}),
  command: () =>
    translate({
      id: 'theme.robotutor.copyPage.command',
      message: 'Copy the command for Claude Code',
    }),
  refused: () =>
    translate({
      id: 'theme.robotutor.copyPage.failed',
      message: 'Your browser did not allow copying.',
    }),
};

/** The button that opens the menu of other programs for a page. `address` is its Markdown file. */
export function PageMenu({address}: {address: string}): ReactNode {
  const [open, setOpen] = useState(false);
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!open) {
      return undefined;
    }
    const onPress = ({target}: Event): void => {
      if (!(target instanceof Node && box.current?.contains(target))) {
        setOpen(false);
      }
    };
    document.addEventListener('pointerdown', onPress);
    document.addEventListener('focusin', onPress);
    return () => {
      document.removeEventListener('pointerdown', onPress);
      document.removeEventListener('focusin', onPress);
    };
  }, [open]);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Escape' && open) {
      event.stopPropagation();
      setOpen(false);
      button.current?.focus();
    }
  };
  return (
    <div ref={box} className={styles.menuBox} onKeyDown={onKeyDown}>
      <button
        ref={button}
        type="button"
        className={styles.button}
        aria-label={words.more()}
        aria-expanded={open}
        aria-controls={id}
        onClick={() => setOpen(!open)}>
        <svg viewBox="0 0 16 16" width="12" height="12" aria-hidden="true">
          <path d="M3 6l5 5 5-5" fill="none" stroke="currentColor" strokeWidth="2" />
        </svg>
      </button>
      <div id={id} className={styles.menu} hidden={!open}>
        {open && <Entries address={address} />}
      </div>
    </div>
  );
}

function Entries({address}: {address: string}): ReactNode {
  const {siteConfig} = useDocusaurusContext();
  const {serviceUrl} = useSettings();
  const {origin} = window.location;
  const server = describeServer(siteConfig.title, serviceUrl, origin);
  const external = {rel: 'noopener', target: '_blank'};
  return (
    <>
      <a href={address} {...external}>
        {words.view()}
      </a>
      {linkChats(words.prompt(origin + address)).map(([name, url]) => (
        <a key={name} href={url} {...external}>
          {words.openIn(name)}
        </a>
      ))}
      <p>{words.connect()}</p>
      {linkEditors(server).map(([name, url]) => (
        <a key={name} href={url}>
          {words.connectTo(name)}
        </a>
      ))}
      <CopyButton
        className={undefined}
        statusClassName={styles.menuStatus}
        copy={async () => ((await copyText(writeClaudeCommand(server))) ? 'copied' : 'refused')}
        failures={{refused: words.refused()}}>
        {words.command()}
      </CopyButton>
    </>
  );
}
