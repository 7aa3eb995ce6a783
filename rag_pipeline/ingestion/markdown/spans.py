"""Build the text of any part of a document from its cleaned blocks.

The part may begin or end inside a block.
"""

from __future__ import annotations

import bisect
from itertools import accumulate
from typing import TYPE_CHECKING

from rag_pipeline.ingestion.markdown.blocks import (
    Piece,
    begins_with_link,
    choose_kind,
    nest_blocks,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rag_pipeline.core.models import Block, ParsedDoc, TextBlock


def cut_text(block: Block, start: int, end: int) -> str:
    """Return the cleaned text of the part of a block between two source offsets.

    Neither offset may be inside characters that cleaning removes or replaces. If cleaning replaced
    characters directly after `start` or directly before `end`, the part includes their replacement.

    Args:
        block: The block to cut.
        start: Offset of the part's first character in the source.
        end: Offset after the part's last character in the source.
    """
    if start <= block.start and end >= block.end:
        return block.text
    first = min(bisect.bisect_left(block.runs, start, key=lambda run: run[1]), len(block.runs) - 1)
    last = max(bisect.bisect_right(block.runs, end, key=lambda run: run[0]) - 1, 0)
    run_start, _, text_start = block.runs[first]
    text_start += max(start - run_start, 0)
    run_start, run_end, text_end = block.runs[last]
    return block.text[text_start : text_end + min(end, run_end) - run_start]


def find_removed(block: Block, position: int) -> tuple[int, int] | None:
    """Return the range of removed or replaced source characters around an offset.

    Returns:
        Start and end offset of the characters that cleaning removed or replaced, if `position` is
        strictly inside them. None if no removed characters surround `position`.
    """
    following = bisect.bisect_left(block.runs, position, key=lambda run: run[0])
    if not 0 < following < len(block.runs):
        return None
    start, end = block.runs[following - 1][1], block.runs[following][0]
    return (start, end) if start < position < end else None


def read_span(parsed: ParsedDoc, start: int, end: int) -> str:
    """Return the cleaned text of a part of a document, for reading and embedding.

    Args:
        parsed: The parsed document.
        start: Offset of the part's first character in the source.
        end: Offset after the part's last character in the source.

    Returns:
        The text of all blocks in the part. Blank lines at the start and end are removed, and so is
        the indentation that all lines share.
    """
    return _trim("".join(gap + text for _, gap, text in _read_parts(parsed, start, end)))


def find_span_blocks(parsed: ParsedDoc, start: int, end: int, text: str) -> tuple[TextBlock, ...]:
    """Find the blocks, such as paragraphs and lists, in the cleaned text of a part of a document.

    Args:
        parsed: The parsed document.
        start: Offset of the part's first character in the source.
        end: Offset after the part's last character in the source.
        text: The text that `read_span` returns for the same document and offsets.

    Returns:
        Blocks with offsets in `text` and lines of the source. A container comes before the blocks
        inside it.
    """
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    pieces: list[Piece] = []
    line = 0
    for block, gap, part in _read_parts(parsed, start, end):
        blank_before = part[: len(part) - len(part.lstrip())].count("\n")
        line += len(gap) if pieces else -blank_before
        last = line + part.rstrip().count("\n")
        piece_end = min(starts[last + 1] - 1, len(text))
        kind = choose_kind(block.text_kind, part, block.containers)
        lines = _find_lines(parsed.source, block, start, end)
        links = start <= block.start and begins_with_link(parsed.source, block.start)
        place = (starts[line + blank_before], piece_end, *lines, links)
        pieces.append((kind, block.containers, *place))
        line += part.count("\n")
    return nest_blocks(pieces)


def _find_lines(source: str, block: Block, start: int, end: int) -> tuple[int, int]:
    """Return the first and the last source line of the part of a block between two offsets.

    Blank lines at the start and end of the part do not count.
    """
    low, high = max(start, block.start), min(end, block.end)
    part = source[low:high]
    before = source.count("\n", block.start, high - len(part.lstrip()))
    return block.start_line + before, block.start_line + before + part.strip().count("\n")


def _read_parts(parsed: ParsedDoc, start: int, end: int) -> Iterator[tuple[Block, str, str]]:
    """Yield the blocks that have text in a part of a document.

    Yields:
        The block, the line ends that separate it from the block before (none for the first block),
        and the block's cleaned text within the part.
    """
    blocks = parsed.blocks
    at = bisect.bisect_right(blocks, start, key=lambda block: block.end)
    last_line = 0
    while at < len(blocks) and blocks[at].start < end:
        block = blocks[at]
        at += 1
        text = cut_text(block, start, end)
        if not text.strip():
            continue
        gap = ("\n" if block.start_line == last_line + 1 else "\n\n") if last_line else ""
        yield block, gap, text
        last_line = block.end_line


def _trim(text: str) -> str:
    """Return a text without shared indentation, blank lines at its edges and trailing space."""
    lines = text.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    while lines and not lines[0].strip():
        lines.pop(0)
    margins = (len(line) - len(line.lstrip(" ")) for line in lines if line.strip())
    margin = min(margins, default=0)
    if margin:
        lines = [line[margin:] if line.strip() else "" for line in lines]
    return "\n".join(lines).rstrip()
