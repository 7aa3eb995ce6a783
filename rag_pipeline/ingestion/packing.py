"""The units of a long section, put together into parts of about equal size."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rag_pipeline.core.tokens import count_tokens
from rag_pipeline.ingestion.markdown.spans import read_span
from rag_pipeline.ingestion.units import cut_units

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_pipeline.core.models import ChunkLimits, ParsedDoc
    from rag_pipeline.ingestion.units import Unit


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
