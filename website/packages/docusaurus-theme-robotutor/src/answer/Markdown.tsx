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
  /** True while the text is not complete, so that it may end inside a diagram. */
  streaming?: boolean;
}

/** One block of Markdown. It is rendered again only if its text changes. */
const Markdown = memo(function Markdown(props: MarkdownProps): ReactNode {
  const {text, marks, plain = false, streaming = false} = props;
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
  const tree = parseMarkdown(prepared.text, formulas?.formulaSyntax);
  return drawMarkdown(tree, ranges, formulas, !streaming);
});

export default Markdown;
