import {memo, useMemo, type ReactNode} from 'react';
import CodeBlock from '@theme/CodeBlock';
import type {Element} from 'hast';
import ReactMarkdown, {type Components} from 'react-markdown';
import {readAddress} from '../addresses';
import {useLinks} from './AnswerContext';
import {CitationLink} from './CitationLink';
import {markCitations, readNumbers} from './citationMarks';
import {prepareFormulas} from './dollars';
import {followLink} from './links';
import {markPassage} from './markPassage';
import {keepWordsOfHtml} from './safeHtml';
import {readTables} from './tables';
import {useBookUrl} from './useBookUrl';
import {useFormulas} from './useFormulas';
import {words} from './words';
import styles from './text.module.css';

/** Longer blocks are shown as plain text, so that no answer can keep the browser busy. */
const MAX_BLOCK = 8000;

/** A block with more formulas is shown as TeX, for the same reason. */
const MAX_FORMULAS = 150;

/** One block of text, and how it is shown. */
export interface MarkdownProps {
  text: string;
  /** Parts of the text to mark, as offsets. */
  marks?: [number, number][];
  /** True to show the text as it is written. */
  plain?: boolean;
}

/** One block of Markdown. It is rendered again only if its text changes. */
const Markdown = memo(function Markdown({text, marks, plain = false}: MarkdownProps): ReactNode {
  const isLong = plain || text.length > MAX_BLOCK;
  const prepared = useMemo(
    () => (isLong ? {text, formulas: 0} : prepareFormulas(text)),
    [isLong, text],
  );
  const formulas = useFormulas(prepared.formulas > 0);
  if (isLong || prepared.formulas > MAX_FORMULAS || (prepared.formulas > 0 && !formulas)) {
    return (
      <p className={styles.plain} dir="auto">
        {text.trim()}
      </p>
    );
  }
  // Offsets fit only a text that the preparation left as it was.
  const ranges = marks && prepared.text === text ? marks : [];
  return (
    <ReactMarkdown
      components={COMPONENTS}
      rehypePlugins={[markPassage(ranges), markCitations, ...(formulas?.rehype ?? [])]}
      remarkPlugins={[readTables, ...(formulas?.remark ?? []), keepWordsOfHtml]}
      urlTransform={(url) => url}>
      {prepared.text}
    </ReactMarkdown>
  );
});

type WithNode = {node?: Element; children?: ReactNode};

/** A heading inside an answer is no heading of the page. */
function Heading({children}: WithNode): ReactNode {
  return (
    <p className={styles.heading} dir="auto">
      <strong>{children}</strong>
    </p>
  );
}

function Link({children, href = ''}: WithNode & {href?: string}): ReactNode {
  const {latest} = useLinks();
  const toBookUrl = useBookUrl();
  const address = readAddress(href, window.location.origin);
  if (!address) {
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

/** The numbers of a citation as links. It stays text if none of its sources is known. */
function Cite({node}: WithNode): ReactNode {
  const {sources} = useLinks();
  const first = node?.children[0];
  const written = first?.type === 'text' ? first.value : '';
  const numbers = readNumbers(written.slice(1, -1));
  const found = numbers.map((number) => sources.find((each) => each.number === number));
  if (!found.some(Boolean)) {
    return written;
  }
  const sentence = String(node?.properties.dataSentence ?? '');
  return numbers.map((number, at) => {
    const source = found[at];
    return source ? (
      <CitationLink key={at} sentence={sentence} source={source} />
    ) : (
      <span key={at}>[{number}]</span>
    );
  });
}

const LANGUAGE = /^language-([\w+#-]{1,30})$/;

function Code({node}: WithNode): ReactNode {
  const code = node?.children[0];
  if (code?.type !== 'element') {
    return null;
  }
  const names = [code.properties.className].flat().map(String);
  const language = names.map((name) => LANGUAGE.exec(name)?.[1]).find(Boolean) ?? 'text';
  const meta = (code.data as {meta?: string} | undefined)?.meta;
  const text = code.children.map((child) => (child.type === 'text' ? child.value : '')).join('');
  return (
    <CodeBlock language={language} metastring={meta ?? undefined}>
      {text.replace(/\n$/, '')}
    </CodeBlock>
  );
}

const COMPONENTS: Components = {
  a: Link,
  cite: Cite,
  h1: Heading,
  h2: Heading,
  h3: Heading,
  h4: Heading,
  h5: Heading,
  h6: Heading,
  img: ({alt}) => <span>{alt}</span>,
  input: ({checked}) => <span aria-hidden="true">{checked ? '☑ ' : '☐ '}</span>,
  li: ({children}) => <li dir="auto">{children}</li>,
  p: ({children}) => <p dir="auto">{children}</p>,
  pre: Code,
  table: ({children}) => (
    <div aria-label={words.table()} className={styles.table} role="region" tabIndex={0}>
      <table>{children}</table>
    </div>
  ),
};

export default Markdown;
