"""The smallest pieces a chunk is made of: whole blocks, and the sentences of long prose.

Belongs here: where prose may be cut. How pieces are put together: chunking.
"""

from __future__ import annotations

import bisect
import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.models import BlockKind
from rag_pipeline.core.sentences import SENTENCE_MARKS, split_sentences
from rag_pipeline.core.tokens import count_tokens
from rag_pipeline.ingestion.markdown.cleaning import clean_block

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_pipeline.core.models import Block, Edit, Hold

ATOMIC_KINDS: Final = frozenset({BlockKind.CODE, BlockKind.TABLE, BlockKind.MATH})
"""Blocks that are never cut."""

_LEADING_KINDS: Final = frozenset({BlockKind.HEADING, BlockKind.DIRECTIVE, BlockKind.JSX})
_SENTENCE_END: Final = re.compile(rf"[{SENTENCE_MARKS}:…][\"'”’」』）》)\]*_`]*\s*$")  # noqa: RUF001  # marks of other scripts
_SEPARATORS: Final = (re.compile(r"\n\s*"), re.compile(r"[;:,.!?]\s+"), re.compile(r"\s+"))
_LOOK_BACK: Final = 48  # characters before a boundary that tell whether a sentence ends there


@dataclass(frozen=True, slots=True)
class Unit:
    """Characters `start` to `end` (exclusive) of one block; `tokens` of 0 are not counted yet."""

    block: Block
    start: int
    end: int
    tokens: int = 0

    @property
    def is_atomic(self) -> bool:
        """Whether it may not be cut further."""
        return self.block.kind in ATOMIC_KINDS

    def leads(self, source: str) -> bool:
        """Tell whether what follows belongs to it: a heading, a title, a sentence with a colon."""
        if self.block.kind in _LEADING_KINDS:
            return True
        return not self.is_atomic and source[self.start : self.end].rstrip().endswith(":")


def read_units(source: str, blocks: Sequence[Block], longest: int, cap: int) -> list[Unit]:
    """Cut blocks into units, in order; blocks without text give none.

    Args:
        source: The document's source.
        blocks: Blocks of one section.
        longest: Tokens above which prose is cut at sentences.
        cap: Tokens above which a sentence is cut too.
    """
    units: list[Unit] = []
    for unit in map(as_unit, blocks):
        if not has_text(source, unit):
            continue
        measured = measure(source, unit)
        if unit.is_atomic or measured.tokens <= longest:
            units.append(measured)
        else:
            pieces = cut_sentences(source, unit)
            units.extend(part for piece in pieces for part in _cut_long(source, piece, cap))
    return units


def begins_sentence(source: str, unit: Unit) -> bool:
    """Tell whether a unit begins its block or a sentence of it, not the rest of a cut sentence."""
    before = source[max(unit.block.start, unit.start - _LOOK_BACK) : unit.start]
    return not before.strip() or _SENTENCE_END.search(before) is not None


def as_unit(block: Block) -> Unit:
    """A whole block as one unit."""
    return Unit(block, block.start, block.end)


def has_text(source: str, unit: Unit) -> bool:
    """Tell whether anything of a unit is left when it is cleaned."""
    return bool(clean_block(source, unit.block, unit.start, unit.end).strip())


def measure(source: str, unit: Unit) -> Unit:
    """Count a unit's tokens, and one for the line break that joins it to the next."""
    text = clean_block(source, unit.block, unit.start, unit.end).strip()
    return replace(unit, tokens=count_tokens(text) + 1)


def cut_sentences(source: str, unit: Unit) -> list[Unit]:
    """Cut prose at sentence ends; a code block, table or formula stays whole."""
    if unit.is_atomic:
        return [unit]
    text = source[unit.start : unit.end]
    spans = [(unit.start + start, unit.start + end) for start, end in split_sentences(text)]
    if spans:  # white space at the edges may be part of an edit
        spans[0] = (unit.start, spans[0][1])
        spans[-1] = (spans[-1][0], unit.end)
    pieces = (
        Unit(unit.block, start, end)
        for start, end in _join_unfinished(source, spans, unit.block.holds)
    )
    return [measure(source, piece) for piece in pieces if has_text(source, piece)]


def _join_unfinished(
    source: str, spans: Sequence[tuple[int, int]], holds: Sequence[Hold]
) -> Iterator[tuple[int, int]]:
    """Join spans whose boundary is a mere line break, or lies within a link or code span."""
    begin: int | None = None
    for at, (start, end) in enumerate(spans):
        begin = start if begin is None else begin
        following = spans[at + 1][0] if at + 1 < len(spans) else None
        if following is not None:
            tail = source[max(begin, end - _LOOK_BACK) : end]
            if _SENTENCE_END.search(tail) is None or _holding(holds, following) is not None:
                continue
        yield begin, end
        begin = None


def _holding(ranges: Sequence[Edit | Hold], position: int) -> tuple[int, int] | None:
    """Find the range that has `position` inside it, its first character not counted."""
    at = bisect.bisect_left(ranges, position, key=lambda item: item[0]) - 1
    if at < 0 or ranges[at][1] <= position:
        return None
    return ranges[at][0], ranges[at][1]


def _cut_long(source: str, unit: Unit, cap: int) -> Iterator[Unit]:
    """Cut a unit into even pieces of at most `cap` tokens: at lines, clauses, words, anywhere."""
    pending = [unit]
    while pending:
        piece = pending.pop()
        cut = _find_cut(source, piece, cap) if piece.tokens > cap else None
        if cut is None:
            yield piece
            continue
        halves = (Unit(piece.block, cut, piece.end), Unit(piece.block, piece.start, cut))
        pending.extend(measure(source, half) for half in halves if has_text(source, half))


def _find_cut(source: str, unit: Unit, cap: int) -> int | None:
    """Best place for a cut that leaves an even share of the unit before it."""
    parts = math.ceil(unit.tokens / cap)
    length = unit.end - unit.start
    goal = unit.start + max(1, length * (parts // 2) // parts)
    reach = max(1, length // (4 * parts))
    low, high = max(unit.start + 1, goal - reach), min(unit.end, goal + reach)
    for separator in _SEPARATORS:
        places = [
            match.end()
            for match in separator.finditer(source, low, high)
            if match.end() < unit.end
            and _holding(unit.block.holds, match.end()) is None
            and _holding(unit.block.edits, match.end()) is None
        ]
        if places:
            return min(places, key=lambda place: abs(place - goal))
    edit = _holding(unit.block.edits, goal)
    if edit is None:
        return goal if unit.start < goal < unit.end else None
    return next((end for end in (edit[1], edit[0]) if unit.start < end < unit.end), None)
