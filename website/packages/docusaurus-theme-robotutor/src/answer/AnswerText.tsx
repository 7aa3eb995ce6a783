import {
  lazy,
  Suspense,
  useEffect,
  useMemo,
  useRef,
  useState,
  type ComponentType,
  type ReactNode,
} from 'react';
import type {MarkdownProps} from './Markdown';
import {joinBlocks, splitBlocks} from './blocks';
import {calmEnd} from './unfinished';
import styles from './text.module.css';

/** Loads what draws Markdown. A panel that only opens does without it. */
export const loadMarkdown = () => import(/* webpackChunkName: "robotutor-markdown" */ './Markdown');

// Without the network, an answer that is kept in the browser stays readable as plain text.
const Markdown = lazy<ComponentType<MarkdownProps>>(() =>
  loadMarkdown().catch(() => ({default: PlainText})),
);

function PlainText({text}: {text: string}): ReactNode {
  return (
    <p className={styles.plain} dir="auto">
      {text.trim()}
    </p>
  );
}

/** Small enough to be parsed in each frame, and large enough to need few parsers. */
const JOINED_SIZE = 2000;

/** The rest of a longer text is shown as it is written. No answer of use is that long. */
const MAX_RICH_TEXT = 40_000;

interface AnswerTextProps {
  text: string;
  /** True while more text may arrive. */
  streaming?: boolean;
  /** Parts of the text to mark, as offsets. */
  marks?: [number, number][];
}

/** The Markdown of an answer. While it arrives, only its last block is parsed again. */
export function AnswerText({text, streaming = false, marks}: AnswerTextProps): ReactNode {
  const shown = useFrameText(text, streaming);
  const blocks = useMemo(() => {
    const split = joinBlocks(splitBlocks(shown), JOINED_SIZE);
    const last = split[split.length - 1];
    return streaming && last
      ? [...split.slice(0, -1), {...last, text: calmEnd(last.text)}]
      : split;
  }, [shown, streaming]);
  const ranges = useMemo(
    () =>
      blocks.map(({start}) =>
        marks?.map(([from, to]): [number, number] => [from - start, to - start]),
      ),
    [blocks, marks],
  );
  return (
    <div className={styles.text}>
      {blocks.map((block, at) => (
        <Suspense key={at} fallback={<PlainText text={block.text} />}>
          <Markdown
            marks={ranges[at]}
            plain={block.start > MAX_RICH_TEXT}
            streaming={streaming}
            text={block.text}
          />
        </Suspense>
      ))}
    </div>
  );
}

/** Returns a text at most once per frame while it is arriving. */
function useFrameText(text: string, streaming: boolean): string {
  const [shown, setShown] = useState(text);
  const latest = useRef(text);
  const frame = useRef<number | null>(null);
  useEffect(() => {
    latest.current = text;
    // A frame that is already asked for is kept. Otherwise fast deltas would put it off forever.
    if (streaming && frame.current === null) {
      frame.current = window.requestAnimationFrame(() => {
        frame.current = null;
        setShown(latest.current);
      });
    }
  }, [text, streaming]);
  useEffect(
    () => () => {
      if (frame.current !== null) {
        window.cancelAnimationFrame(frame.current);
        frame.current = null;
      }
    },
    [],
  );
  return streaming && text.startsWith(shown) ? shown : text;
}
