import {useEffect, useRef, useState, type ReactNode} from 'react';
import {Toggle} from './Toggle';
import styles from './answer.module.css';

/** The share of the list's height that a passage may take. */
const SHARE = 0.29;

/** A passage is cut only if it is higher than its limit by more than this share. */
const TOLERANCE = 1.2;

/** The place of the first marked words in a passage that is cut, as a share of its height. */
const MARK_PLACE = 0.25;

interface Cut {
  /** Pixels that are visible. */
  limit: number;
  /** Pixels above them that are not. */
  shift: number;
}

/**
 * A passage that takes about a third of the list, so that the rest of the answer is in view.
 *
 * If the marked words are below the cut, the part around them is visible. A button shows all.
 */
export function Capped({children}: {children: ReactNode}): ReactNode {
  const content = useRef<HTMLDivElement>(null);
  const [cut, setCut] = useState<Cut | null>(null);
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const inner = content.current;
    const list = inner?.closest('[role="region"]');
    if (!inner || !list || typeof ResizeObserver === 'undefined') {
      return undefined;
    }
    // Formulas and code that load later change the height.
    const resized = new ResizeObserver(() => {
      const limit = Math.round(list.clientHeight * SHARE);
      const isLong = inner.offsetHeight > limit * TOLERANCE;
      const mark = inner.querySelector('mark');
      const top = mark ? mark.getBoundingClientRect().top - inner.getBoundingClientRect().top : 0;
      const isHidden = top > limit * (1 - MARK_PLACE);
      const lowest = inner.offsetHeight - limit;
      const shift = isHidden ? Math.round(Math.min(lowest, top - limit * MARK_PLACE)) : 0;
      setCut((before) => {
        const isSame = before?.limit === limit && before.shift === shift;
        return isLong ? (isSame ? before : {limit, shift}) : null;
      });
    });
    resized.observe(inner);
    resized.observe(list);
    return () => resized.disconnect();
  }, []);
  const isCut = cut !== null && !open;
  return (
    <>
      <div
        className={styles.capped}
        data-cut={isCut || undefined}
        data-shifted={(isCut && cut.shift > 0) || undefined}
        style={isCut ? {maxBlockSize: cut.limit} : undefined}>
        <div ref={content} style={isCut ? {marginBlockStart: -cut.shift} : undefined}>
          {children}
        </div>
      </div>
      {cut !== null && <Toggle open={open} onToggle={setOpen} />}
    </>
  );
}
