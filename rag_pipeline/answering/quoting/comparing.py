"""Recognise the tables that compare the things that a question compares."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.core.text.terms import find_distinct_terms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rag_pipeline.answering.quoting.passages import Part

_LEAST_SHARE: Final = 0.5  # share of the question that the names of the things must cover
_ROW: Final = re.compile(r"^[ \t>]*+\|(.*)$", re.MULTILINE)
_CELL_END: Final = re.compile(r"(?<!\\)\|")


def compares_in_table(part: Part, worth: Mapping[str, float]) -> bool:
    """Return True if a part has a table with columns or rows for the things that are compared.

    Two cells of the first row, or two cells of the first column, each name something of the
    question that the other does not name.

    Args:
        part: A part of a source.
        worth: The share of each term of the question.
    """
    if TextBlockKind.TABLE not in part.kinds:
        return False
    rows = [_CELL_END.split(row) for row in _ROW.findall(part.text)]
    if not rows:
        return False
    return any(_name_two(cells, worth) for cells in (rows[0], [row[0] for row in rows[1:]]))


def _name_two(cells: list[str], worth: Mapping[str, float]) -> bool:
    named = [worth.keys() & find_distinct_terms(cell) for cell in cells]
    return any(
        first - second and second - first and _share(first | second, worth) >= _LEAST_SHARE
        for first, second in combinations(filter(None, named), 2)
    )


def _share(terms: set[str], worth: Mapping[str, float]) -> float:
    return sum(worth[term] for term in terms)
