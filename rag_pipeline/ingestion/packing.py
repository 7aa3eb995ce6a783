"""The units of a section (whole blocks, or sentences of long prose), packed into even parts."""

from __future__ import annotations

import bisect
import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.sentences import SENTENCE_MARKS, split_sentences
from rag_pipeline.core.tokens import count_tokens
from rag_pipeline.ingestion.markdown.spans import cut_text, find_removed, read_span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_pipeline.core.models import Block, ChunkLimits, Hold, ParsedDoc

_SENTENCE_END: Final = re.compile(rf"[{SENTENCE_MARKS}:…][\"'”’」』）》)\]*_`]*\s*$")  # noqa: RUF001  # marks of other scripts
_SEPARATORS: Final = (re.compile(r"\n\s*"), re.compile(r"[;:,.!?]\s+"), re.compile(r"\s+"))
_LOOK_BACK: Final = 48  # characters before a boundary that tell whether a sentence ends there


@dataclass(frozen=True, slots=True)
class Unit:
    """A block or a part of it.

    Attributes:
        start: First character in the source.
        end: Position after the last character in the source.
        text: Cleaned.
        tokens: Of the text, and one for the line break that joins it to the next; 0 until counted.
    """

    block: Block
    start: int
    end: int
    text: str
    tokens: int = 0

    @property
    def is_heading(self) -> bool:
        """Whether the unit belongs to a heading."""
        return self.block.heading is not None

    def leads(self, source: str) -> bool:
        """Tell whether what follows belongs to it: a heading, a title, a sentence with a colon."""
        if self.block.leads or self.block.is_atomic:
            return self.block.leads
        return source[self.start : self.end].rstrip().endswith(":")


def read_units(blocks: Sequence[Block]) -> list[Unit]:
    """Make each block that has text one unit, without counting its tokens."""
    return [
        Unit(block, block.start, block.end, block.text) for block in blocks if block.text.strip()
    ]


def cut_units(source: str, units: Sequence[Unit], longest: int, cap: int) -> list[Unit]:
    """Cut units of whole blocks where they are too long, and count tokens.

    Args:
        source: The document's source.
        units: Of one section.
        longest: Tokens above which prose is cut at sentences.
        cap: Tokens above which a sentence is cut too.
    """
    cut: list[Unit] = []
    for unit in units:
        measured = measure(unit)
        if unit.block.is_atomic or measured.tokens <= longest:
            cut.append(measured)
        else:
            pieces = cut_sentences(source, unit)
            cut.extend(part for piece in pieces for part in _cut_long(source, piece, cap))
    return cut


def begins_sentence(source: str, unit: Unit) -> bool:
    """Tell whether a unit begins its block or a sentence of it, not the rest of a cut sentence."""
    before = source[max(unit.block.start, unit.start - _LOOK_BACK) : unit.start]
    return not before.strip() or _SENTENCE_END.search(before) is not None


def measure(unit: Unit) -> Unit:
    """Count a unit's tokens."""
    return replace(unit, tokens=count_tokens(unit.text.strip()) + 1)


def cut_sentences(source: str, unit: Unit) -> list[Unit]:
    """Cut prose at sentence ends; a code block, table or formula stays whole."""
    if unit.block.is_atomic:
        return [unit]
    text = source[unit.start : unit.end]
    spans = [(unit.start + start, unit.start + end) for start, end in split_sentences(text)]
    if spans:  # white space at the edges may be part of what cleaning removes
        spans[0] = (unit.start, spans[0][1])
        spans[-1] = (spans[-1][0], unit.end)
    return list(_cut_at(unit, _join_unfinished(source, spans, unit.block.holds)))


def cut_parts(
    parsed: ParsedDoc, section: Sequence[Unit], limits: ChunkLimits
) -> Iterator[Sequence[Unit]]:
    """Cut a section that is too long for one chunk into parts that are not, in order.

    Args:
        parsed: The document.
        section: Whole blocks. A block that is never cut and too long is a part of its own.
        limits: Sizes in tokens.
    """
    cap = max(limits.max_tokens - 2 * limits.overlap_tokens, limits.max_tokens // 2, 1)
    units = cut_units(parsed.source, section, min(limits.min_tokens, cap), cap)
    parts = [
        part
        for run in _split_at_oversized(units, limits.max_tokens)
        for part in _cut_evenly(_group(parsed.source, run, limits.max_tokens), limits, cap)
    ]
    yield from _keep_bound(parsed, parts, limits.max_tokens)


def _split_at_oversized(units: Sequence[Unit], max_tokens: int) -> Iterator[list[Unit]]:
    """Split units into runs; each block that is too long for a chunk is a run of its own."""
    run: list[Unit] = []
    for unit in units:
        if unit.block.is_atomic and unit.tokens > max_tokens:
            yield from ([run] if run else [])
            yield [unit]
            run = []
        else:
            run.append(unit)
    yield from ([run] if run else [])


def _group(source: str, units: Sequence[Unit], max_tokens: int) -> list[list[Unit]]:
    """Group units that stay together: a heading, title or lead-in and the unit after it."""
    groups: list[list[Unit]] = []
    size, is_led = 0, False
    for unit in units:
        if is_led and size + unit.tokens <= max_tokens:
            groups[-1].append(unit)
            size += unit.tokens
        else:
            groups.append([unit])
            size = unit.tokens
        is_led = unit.leads(source)
    return groups


def _cut_evenly(groups: Sequence[list[Unit]], limits: ChunkLimits, cap: int) -> list[list[Unit]]:
    """Put groups together into parts of about equal size, at most `cap` tokens or one group."""
    sizes = [sum(unit.tokens for unit in group) for group in groups]
    remaining = sum(sizes)
    if remaining <= limits.max_tokens:
        return [[unit for group in groups for unit in group]]
    count = max(math.ceil(remaining / cap), round(remaining / limits.target_tokens), 2)
    parts: list[list[Unit]] = [[]]
    filled = 0
    for group, size in zip(groups, sizes, strict=True):
        is_full = filled + size > cap or (count > 1 and filled + size / 2 >= remaining / count)
        if filled and is_full:
            remaining, count, filled = remaining - filled, max(count - 1, 1), 0
            parts.append([])
        parts[-1].extend(group)
        filled += size
    if filled < limits.min_tokens and len(parts) > 1:
        joined = parts[-2] + parts[-1]
        if sum(unit.tokens for unit in joined) <= limits.max_tokens:
            parts[-2:] = [joined]
    return parts


def _keep_bound(
    parsed: ParsedDoc, parts: Sequence[Sequence[Unit]], max_tokens: int
) -> Iterator[Sequence[Unit]]:
    """Halve parts whose joined text has more tokens than its units had."""
    pending = list(reversed(parts))
    while pending:
        part = pending.pop()
        estimate = sum(unit.tokens for unit in part)
        is_close = len(part) > 1 and estimate > max_tokens * 0.9
        if is_close and _count_text(parsed, part) > max_tokens:
            pending += [part[len(part) // 2 :], part[: len(part) // 2]]
        else:
            yield part


def _count_text(parsed: ParsedDoc, units: Sequence[Unit]) -> int:
    return count_tokens(read_span(parsed, units[0].start, units[-1].end))


def _cut_at(unit: Unit, spans: Iterator[tuple[int, int]]) -> Iterator[Unit]:
    """Cut a unit at spans of the source; parts without text are left out."""
    for start, end in spans:
        text = cut_text(unit.block, start, end)
        if text.strip():
            yield measure(Unit(unit.block, start, end, text))


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
            if _SENTENCE_END.search(tail) is None or _is_held(holds, following):
                continue
        yield begin, end
        begin = None


def _is_held(holds: Sequence[Hold], position: int) -> bool:
    """Tell whether a hold has characters before and after a position."""
    at = bisect.bisect_left(holds, position, key=lambda hold: hold[0]) - 1
    return at >= 0 and holds[at][1] > position


def _cut_long(source: str, unit: Unit, cap: int) -> Iterator[Unit]:
    """Cut a unit into even pieces of at most `cap` tokens: at lines, clauses, words, anywhere."""
    pending = [unit]
    while pending:
        piece = pending.pop()
        cut = _find_cut(source, piece, cap) if piece.tokens > cap else None
        if cut is None:
            yield piece
        else:
            pending.extend(_cut_at(piece, iter([(cut, piece.end), (piece.start, cut)])))


def _find_cut(source: str, unit: Unit, cap: int) -> int | None:
    """Find the best place for a cut that leaves an even share of the unit before it."""
    parts = math.ceil(unit.tokens / cap)
    length = unit.end - unit.start
    goal = unit.start + max(1, length * (parts // 2) // parts)
    reach = max(1, length // (4 * parts))
    low, high = max(unit.start + 1, goal - reach), min(unit.end, goal + reach)
    for separator in _SEPARATORS:
        places = [
            match.end()
            for match in separator.finditer(source, low, high)
            if match.end() < unit.end and not _is_held(unit.block.holds, match.end())
        ]
        if places:
            return min(places, key=lambda place: abs(place - goal))
    removed = find_removed(unit.block, goal)
    candidates = [goal] if removed is None else [removed[1], removed[0]]
    return next((place for place in candidates if unit.start < place < unit.end), None)
