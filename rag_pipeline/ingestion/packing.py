"""Cut a section that is too long for one chunk into parts of about equal size.

The text is handled in units: whole blocks, or sentences of long prose.
"""

from __future__ import annotations

import bisect
import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.text.sentences import SENTENCE_MARKS, split_sentences
from rag_pipeline.core.text.tokens import count_tokens
from rag_pipeline.ingestion.markdown.spans import cut_text, find_removed, read_span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_pipeline.core.models import Block, ChunkLimits, ParsedDoc
    from rag_pipeline.core.text.source_lines import Hold

_SENTENCE_END: Final = re.compile(rf"[{SENTENCE_MARKS}:…][\"'”’」』）》)\]*_`]*\s*$")  # noqa: RUF001  # marks of other scripts
_SEPARATORS: Final = (re.compile(r"\n\s*"), re.compile(r"[;:,.!?]\s+"), re.compile(r"\s+"))
_LOOK_BACK: Final = 48  # characters; enough to see the mark that ends a sentence


@dataclass(frozen=True, slots=True)
class Unit:
    """A Markdown block, or a part of one, that stays together in one chunk.

    Attributes:
        block: The block.
        start: Offset in the source of the first character.
        end: Offset in the source after the last character.
        text: The cleaned text.
        tokens: Number of tokens of `text`, plus 1 for the line break after it; 0 until counted.
    """

    block: Block
    start: int
    end: int
    text: str
    tokens: int = 0

    @property
    def is_heading(self) -> bool:
        """True if the unit is a heading or a part of one."""
        return self.block.heading is not None

    def leads(self, source: str) -> bool:
        """Return True if the next unit must stay with this one.

        This is the case for headings, for titles such as `:::note Title` or the label of a tab, and
        for prose that ends with a colon.
        """
        if self.block.leads or self.block.is_atomic:
            return self.block.leads
        return source[self.start : self.end].rstrip().endswith(":")


def read_units(blocks: Sequence[Block]) -> list[Unit]:
    """Return one unit for each block that has text, in order; tokens are not counted yet."""
    return [
        Unit(block, block.start, block.end, block.text) for block in blocks if block.text.strip()
    ]


def cut_units(source: str, units: Sequence[Unit], longest: int, cap: int) -> list[Unit]:
    """Count the tokens of a section's units, and cut long prose into smaller units.

    Code blocks, tables and formulas are never cut.

    Args:
        source: The document's source.
        units: Whole blocks of one section.
        longest: A prose unit with more tokens than this is cut into sentences.
        cap: A sentence with more tokens than this is cut into pieces.

    Returns:
        The units in source order, with their token counts.
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
    """Return True if a unit begins at the start of a sentence or block, not within a sentence."""
    before = source[max(unit.block.start, unit.start - _LOOK_BACK) : unit.start]
    return not before.strip() or _SENTENCE_END.search(before) is not None


def measure(unit: Unit) -> Unit:
    """Return the unit with its token count filled in: the text's tokens plus 1 for a line break."""
    return replace(unit, tokens=count_tokens(unit.text.strip()) + 1)


def cut_sentences(source: str, unit: Unit) -> list[Unit]:
    """Cut a unit of prose into sentences, in order; a code block, table or formula stays whole."""
    if unit.block.is_atomic:
        return [unit]
    text = source[unit.start : unit.end]
    spans = [(unit.start + start, unit.start + end) for start, end in split_sentences(text)]
    if spans:  # keep white space at the edges: cleaning may have replaced it together with markup
        spans[0] = (unit.start, spans[0][1])
        spans[-1] = (spans[-1][0], unit.end)
    return list(_cut_at(unit, _join_unfinished(source, spans, unit.block.holds)))


def cut_parts(
    parsed: ParsedDoc, section: Sequence[Unit], limits: ChunkLimits
) -> Iterator[Sequence[Unit]]:
    """Cut a section that is too long for one chunk into parts that fit, in order.

    Args:
        parsed: The document.
        section: The section's whole blocks as units.
        limits: Chunk sizes in tokens.

    Yields:
        The units of each part, at most `limits.max_tokens` tokens. A code block, table or formula
        that is longer than that is a part of its own.
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
    """Split units into runs. Code, tables and formulas over `max_tokens` are runs of their own."""
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
    """Group each unit that introduces the next one (see `Unit.leads`) with that next unit.

    A group has at most `max_tokens` tokens, unless a single unit has more. Other units are groups
    of their own.
    """
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
    """Join consecutive groups of units into parts of about equal size.

    A part has at most `cap` tokens unless it consists of one group. If all groups together have at
    most `limits.max_tokens` tokens, they are one part. A last part below `limits.min_tokens` is
    joined to the part before it if both together have at most `limits.max_tokens` tokens.
    """
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
    """Yield the parts in order; halve each part of several units that exceeds `max_tokens` tokens.

    The joined text of a part is counted, because it can have more tokens than the sum of its units.
    """
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
    """Return the exact number of tokens in the joined text of consecutive units."""
    return count_tokens(read_span(parsed, units[0].start, units[-1].end))


def _cut_at(unit: Unit, spans: Iterator[tuple[int, int]]) -> Iterator[Unit]:
    """Yield the part of a unit in each span of source offsets; spans without text are skipped."""
    for start, end in spans:
        text = cut_text(unit.block, start, end)
        if text.strip():
            yield measure(Unit(unit.block, start, end, text))


def _join_unfinished(
    source: str, spans: Sequence[tuple[int, int]], holds: Sequence[Hold]
) -> Iterator[tuple[int, int]]:
    """Join sentence spans across boundaries that do not end a sentence.

    A boundary is ignored if no sentence mark stands before it, or if it lies inside a hold
    (characters that must stay together, such as a link or a code span).
    """
    begin: int | None = None
    for at, (start, end) in enumerate(spans):
        begin = start if begin is None else begin
        following = spans[at + 1][0] if at + 1 < len(spans) else None
        if following is not None:
            tail = source[max(begin, end - _LOOK_BACK) : end]
            if _SENTENCE_END.search(tail) is None or _is_inside_hold(holds, following):
                continue
        yield begin, end
        begin = None


def _is_inside_hold(holds: Sequence[Hold], position: int) -> bool:
    """Return True if a position lies inside a hold: characters that must not be cut apart."""
    at = bisect.bisect_left(holds, position, key=lambda hold: hold[0]) - 1
    return at >= 0 and holds[at][1] > position


def _cut_long(source: str, unit: Unit, cap: int) -> Iterator[Unit]:
    """Cut a unit into pieces of about equal size with at most `cap` tokens each.

    The preferred places for a cut are line ends, then ends of clauses, then spaces.
    """
    pending = [unit]
    while pending:
        piece = pending.pop()
        cut = _find_cut(source, piece, cap) if piece.tokens > cap else None
        if cut is None:
            yield piece
        else:
            pending.extend(_cut_at(piece, iter([(cut, piece.end), (piece.start, cut)])))


def _find_cut(source: str, unit: Unit, cap: int) -> int | None:
    """Return the source offset of the best cut near the middle of a unit; None if it cannot be cut.

    Line ends are preferred, then ends of clauses, then spaces. If there are none, the cut may be
    anywhere except inside markup that cleaning removes.
    """
    parts = math.ceil(unit.tokens / cap)
    length = unit.end - unit.start
    goal = unit.start + max(1, length * (parts // 2) // parts)
    reach = max(1, length // (4 * parts))
    low, high = max(unit.start + 1, goal - reach), min(unit.end, goal + reach)
    for separator in _SEPARATORS:
        places = [
            match.end()
            for match in separator.finditer(source, low, high)
            if match.end() < unit.end and not _is_inside_hold(unit.block.holds, match.end())
        ]
        if places:
            return min(places, key=lambda place: abs(place - goal))
    removed = find_removed(unit.block, goal)
    candidates = [goal] if removed is None else [removed[1], removed[0]]
    return next((place for place in candidates if unit.start < place < unit.end), None)
