/** A selected part of a table as Markdown. */

import {writeParagraph} from './writeInline';

/**
 * Returns the selected rows of a table, or the text of a single selected cell.
 *
 * The head of the table is returned only if it is selected. Cells outside of the selection are
 * empty, so that the columns stay.
 */
export function writeTable(range: Range, table: HTMLTableElement): string {
  const rows = Array.from(table.rows)
    .filter((row) => range.intersectsNode(row))
    .map((row) => ({
      isHead: row.closest('thead') !== null,
      cells: Array.from(row.cells, (cell) =>
        writeParagraph(range, Array.from(cell.childNodes)).replace(/\s*\n\s*/g, ' '),
      ),
    }))
    .filter(({cells}) => cells.some(Boolean));
  const filled = rows.flatMap(({cells}) => cells.filter(Boolean));
  if (filled.length <= 1) return filled[0] ?? '';
  const lines: string[] = [];
  rows.forEach(({isHead, cells}, at) => {
    lines.push(`| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`);
    if (isHead && !rows[at + 1]?.isHead) lines.push(`|${cells.map(() => '---|').join('')}`);
  });
  return lines.join('\n');
}
