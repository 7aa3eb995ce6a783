import {memo, useMemo, type ReactNode} from 'react';
import {prepareFormulas} from './dollars';
import {drawMarkdown} from './drawMarkdown';
import {parseMarkdown} from './parseMarkdown';
import {useFormulas} from './useFormulas';
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
  return drawMarkdown(parseMarkdown(prepared.text, formulas?.formulaSyntax), ranges, formulas);
});

export default Markdown;
