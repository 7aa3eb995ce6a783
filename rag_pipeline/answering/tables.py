"""Cut long tables to the rows that answer a question, with their header."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.core.text.terms import find_distinct_terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.models import TextBlock

MOST_ROWS: Final = 12
"""Largest number of rows of a table that an answer or a prompt shows, without the header."""

_LEAST_SHARE: Final = 0.7
"""Smallest share of the best row's weight that another row needs."""

_DELIMITER: Final = re.compile(r"[\s>]*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")


def cut_tables(
    text: str, blocks: Sequence[TextBlock], question: str
) -> tuple[str, tuple[TextBlock, ...]]:
    """Return a text whose long tables have only the rows that answer a question.

    A row counts by the terms of the question that it contains; a term of few rows counts more. If
    no row contains one, the first rows are kept. A table of at most `MOST_ROWS` rows stays whole.

    Args:
        text: Text of one or more chunks.
        blocks: Blocks of the text.
        question: The question of the reader.

    Returns:
        The text and its blocks. The lines of a block in the document do not change.
    """
    cuts: list[tuple[int, int]] = []
    for block in blocks:
        if block.kind is TextBlockKind.TABLE:
            cuts += _find_cuts(text, block, question)
    if not cuts:
        return text, tuple(blocks)
    kept: list[str] = []
    at = 0
    for start, end in cuts:
        kept.append(text[at:start])
        at = end
    kept.append(text[at:])
    return "".join(kept), tuple(
        replace(block, start=_shift(cuts, block.start), end=_shift(cuts, block.end))
        for block in blocks
    )


def _find_cuts(text: str, table: TextBlock, question: str) -> list[tuple[int, int]]:
    """Return start and end offset of the rows to leave out, each with the line end before it."""
    rows: list[tuple[int, int]] = []
    at = table.start
    for line in text[table.start : table.end].split("\n"):
        rows.append((at, at + len(line)))
        at += len(line) + 1
    has_header = len(rows) > 1 and _DELIMITER.fullmatch(text[slice(*rows[1])]) is not None
    rows = rows[2:] if has_header else rows
    if len(rows) <= MOST_ROWS:
        return []
    chosen = _choose_rows([text[start:end] for start, end in rows], question)
    cuts: list[tuple[int, int]] = []
    for number, (start, end) in enumerate(rows):
        begin = start - (start > table.start)
        if number in chosen:
            continue
        if cuts and cuts[-1][1] == begin:
            cuts[-1] = (cuts[-1][0], end)
        else:
            cuts.append((begin, end))
    return cuts


def _choose_rows(rows: Sequence[str], question: str) -> set[int]:
    """Return the indexes of the rows that contain the rarest terms of a question."""
    asked = find_distinct_terms(question)
    beginnings = {term[:4] for term in asked}  # a stem may end otherwise than the word
    found: dict[int, frozenset[str]] = {}
    for number, row in enumerate(rows):
        lowered = row.lower()
        if any(begins in lowered for begins in beginnings):
            terms = find_distinct_terms(row) & asked
            if terms:
                found[number] = terms
    counts = Counter(term for terms in found.values() for term in terms)
    weights = {term: math.log(1 + len(rows) / count) for term, count in counts.items()}
    scores = {number: sum(weights[term] for term in terms) for number, terms in found.items()}
    least = _LEAST_SHARE * max(scores.values(), default=0.0)
    best = sorted(scores, key=lambda number: (-scores[number], number))[:MOST_ROWS]
    return {number for number in best if scores[number] >= least} or {*range(MOST_ROWS)}


def _shift(cuts: Sequence[tuple[int, int]], offset: int) -> int:
    """Return the offset in the cut text for an offset in the text."""
    return offset - sum(min(end, offset) - start for start, end in cuts if start < offset)
