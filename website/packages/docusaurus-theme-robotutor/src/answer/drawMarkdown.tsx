/** Draws the tree of a Markdown text. Only the elements that are named here can appear. */

import {Fragment, type ReactNode} from 'react';
import CodeBlock from '@theme/CodeBlock';
import type {Code, Link, List, ListItem, Nodes, Parents, Root, Table, Text} from 'mdast';
import type {} from 'mdast-util-math'; // the types of formulas
import {AnswerLink} from './AnswerLink';
import {Citations} from './Citations';
import {Diagram} from './Diagram';
import {readLastSentence, splitCitations} from './citationMarks';
import type {Formulas} from './useFormulas';
import {words} from './words';
import styles from './text.module.css';

/** The part of a text that is being drawn. */
interface Drawing {
  /** The ranges of the text to mark, as offsets. */
  marks: [number, number][];
  formulas: Formulas | null;
  /** True to draw diagrams, and not to show their source. */
  diagrams: boolean;
  /** The text of the current block so far, by which a citation knows its sentence. */
  read: string;
  /** True inside links, whose text is neither marked nor cited. */
  inLink: boolean;
}

/** Returns the elements for a tree. */
export const drawMarkdown = (
  tree: Root,
  marks: [number, number][],
  formulas: Formulas | null,
  diagrams: boolean,
): ReactNode => drawAll(tree, {marks, formulas, diagrams, read: '', inLink: false});

const drawAll = ({children}: Parents, drawing: Drawing): ReactNode =>
  (children as Nodes[]).map((node, at) => <Fragment key={at}>{draw(node, drawing)}</Fragment>);

function draw(node: Nodes, drawing: Drawing): ReactNode {
  switch (node.type) {
    case 'text':
      return drawText(node, drawing);
    case 'paragraph':
      drawing.read = '';
      return <p dir="auto">{drawAll(node, drawing)}</p>;
    case 'heading':
      // A heading inside an answer is no heading of the page.
      drawing.read = '';
      return (
        <p className={styles.heading} dir="auto">
          <strong>{drawAll(node, drawing)}</strong>
        </p>
      );
    case 'emphasis':
      return <em>{drawAll(node, drawing)}</em>;
    case 'strong':
      return <strong>{drawAll(node, drawing)}</strong>;
    case 'delete':
      return <del>{drawAll(node, drawing)}</del>;
    case 'inlineCode':
      drawing.read += node.value;
      return <code>{node.value}</code>;
    case 'inlineMath':
      drawing.read += node.value;
      return drawFormula(node.value, false, drawing);
    case 'math':
      return drawFormula(node.value, true, drawing);
    case 'break':
      return <br />;
    case 'link':
      return drawLink(node, drawing);
    case 'image':
      return <span>{node.alt}</span>;
    case 'list':
      return drawList(node, drawing);
    case 'code':
      return drawCode(node, drawing);
    case 'blockquote':
      return <blockquote>{drawAll(node, drawing)}</blockquote>;
    case 'thematicBreak':
      return <hr />;
    case 'table':
      return drawTable(node, drawing);
    default:
      return 'children' in node ? drawAll(node, drawing) : null;
  }
}

function drawText(node: Text, drawing: Drawing): ReactNode {
  const {inLink, marks} = drawing;
  if (inLink) {
    drawing.read += node.value;
    return node.value;
  }
  const start = node.position?.start.offset ?? 0;
  // Offsets of a text with escaped characters do not fit the source. It stays unmarked.
  const fits = node.position?.end.offset === start + node.value.length;
  return splitMarked(node.value, start, fits ? marks : []).map(({text, isMarked}, at) => {
    const content = splitCitations(text).map((piece, number) => {
      if (piece.numbers.length === 0) {
        drawing.read += piece.text;
        return piece.text;
      }
      const sentence = readLastSentence(drawing.read);
      return <Citations key={number} piece={piece} sentence={sentence} />;
    });
    return isMarked ? <mark key={at}>{content}</mark> : <Fragment key={at}>{content}</Fragment>;
  });
}

/** Splits a text, which begins at an offset, at the borders of marked ranges. */
function splitMarked(
  value: string,
  start: number,
  marks: [number, number][],
): {text: string; isMarked: boolean}[] {
  const parts: {text: string; isMarked: boolean}[] = [];
  let from = 0;
  for (const [first, last] of marks) {
    const begin = Math.max(from, first - start);
    const end = Math.min(value.length, last - start);
    if (begin < end) {
      parts.push({text: value.slice(from, begin), isMarked: false});
      parts.push({text: value.slice(begin, end), isMarked: true});
      from = end;
    }
  }
  parts.push({text: value.slice(from), isMarked: false});
  return parts.filter(({text}) => text !== '');
}

function drawLink(link: Link, drawing: Drawing): ReactNode {
  drawing.inLink = true;
  const content = drawAll(link, drawing);
  drawing.inLink = false;
  return <AnswerLink href={link.url}>{content}</AnswerLink>;
}

function drawFormula(tex: string, display: boolean, {formulas}: Drawing): ReactNode {
  return formulas ? <formulas.Formula tex={tex} display={display} /> : tex;
}

function drawList(list: List, drawing: Drawing): ReactNode {
  const isLoose = list.spread === true || list.children.some(({spread}) => spread);
  const items = list.children.map((item, at) => (
    <li key={at} dir="auto">
      {drawItem(item, isLoose, drawing)}
    </li>
  ));
  return list.ordered ? <ol start={list.start ?? 1}>{items}</ol> : <ul>{items}</ul>;
}

function drawItem(item: ListItem, isLoose: boolean, drawing: Drawing): ReactNode {
  const {checked} = item;
  const box = typeof checked === 'boolean' && <span aria-hidden="true">{checked ? '☑ ' : '☐ '}</span>;
  drawing.read = '';
  const content = item.children.map((child, at) => (
    <Fragment key={at}>
      {/* Items close together have no paragraphs. */}
      {!isLoose && child.type === 'paragraph' ? drawAll(child, drawing) : draw(child, drawing)}
    </Fragment>
  ));
  return (
    <>
      {box}
      {content}
    </>
  );
}

function drawCode({lang, meta, value}: Code, {diagrams}: Drawing): ReactNode {
  if (lang === 'mermaid' && diagrams) {
    return <Diagram source={value} />;
  }
  const language = /^[\w+#-]{1,30}$/.test(lang ?? '') ? (lang as string) : 'text';
  return (
    <CodeBlock language={language} metastring={meta ?? undefined}>
      {value}
    </CodeBlock>
  );
}

/** A wide table is in a box that the keyboard can scroll. */
function drawTable({align, children: [head, ...rows]}: Table, drawing: Drawing): ReactNode {
  const drawRow = (row: typeof head, Cell: 'td' | 'th'): ReactNode => (
    <tr>
      {row?.children.map((cell, at) => {
        drawing.read = '';
        return (
          <Cell key={at} style={{textAlign: align?.[at] ?? undefined}}>
            {drawAll(cell, drawing)}
          </Cell>
        );
      })}
    </tr>
  );
  return (
    <div aria-label={words.table()} className={styles.table} role="region" tabIndex={0}>
      <table>
        <thead>{drawRow(head, 'th')}</thead>
        <tbody>
          {rows.map((row, at) => (
            <Fragment key={at}>{drawRow(row, 'td')}</Fragment>
          ))}
        </tbody>
      </table>
    </div>
  );
}
