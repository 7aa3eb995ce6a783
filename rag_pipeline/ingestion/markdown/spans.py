"""Spans of a document as text: joined from its cleaned blocks, whole or cut."""

from __future__ import annotations

import bisect
from itertools import accumulate
from typing import TYPE_CHECKING

from rag_pipeline.ingestion.markdown.text_blocks import Piece, choose_kind, nest_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rag_pipeline.core.models import Block, ParsedDoc, TextBlock


def cut_text(block: Block, start: int, end: int) -> str:
    """Return the cleaned text of a part of one block.

    Args:
        block: The block.
        start: First character in the source.
        end: Position after the last character. Neither lies within characters that cleaning
            removes or replaces; what is replaced right after `start` or right before `end`
            belongs to the part.
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
    """Find the characters that cleaning removes or replaces on both sides of a position."""
    following = bisect.bisect_left(block.runs, position, key=lambda run: run[0])
    if not 0 < following < len(block.runs):
        return None
    start, end = block.runs[following - 1][1], block.runs[following][0]
    return (start, end) if start < position < end else None


def read_span(parsed: ParsedDoc, start: int, end: int) -> str:
    """Return the cleaned text of a span of a document, for reading and embedding.

    Args:
        parsed: The document.
        start: First character.
        end: Position after the last character.

    Returns:
        The text without blank lines at its edges, and without the margin that all lines share.
    """
    return _trim("".join(gap + text for _, gap, text in _read_parts(parsed, start, end)))


def find_span_blocks(parsed: ParsedDoc, start: int, end: int, text: str) -> tuple[TextBlock, ...]:
    """Find the blocks of `text`, which is what `read_span` returns for `start` and `end`."""
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    pieces: list[Piece] = []
    line = 0
    for block, gap, part in _read_parts(parsed, start, end):
        blank_before = part[: len(part) - len(part.lstrip())].count("\n")
        line += len(gap) if pieces else -blank_before
        last = line + part.rstrip().count("\n")
        piece_end = min(starts[last + 1] - 1, len(text))
        kind = choose_kind(block.text_kind, part, block.containers)
        pieces.append((kind, block.containers, starts[line + blank_before], piece_end))
        line += part.count("\n")
    return nest_blocks(pieces)


def _read_parts(parsed: ParsedDoc, start: int, end: int) -> Iterator[tuple[Block, str, str]]:
    """The blocks with text in a span, the line ends before each, and its text in the span."""
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
    """Remove the margin that all lines share, and blank lines at the edges."""
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
