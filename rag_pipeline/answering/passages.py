"""Units of a passage that an answer quotes whole: sentences, code blocks, tables.

Belongs here: where units begin and end. Which of them answer a question: extractive.
"""

from __future__ import annotations

import re
from typing import Final

from rag_pipeline.core.sentences import split_sentences

_FENCE: Final = re.compile(r"^[ \t]*(?P<mark>`{3,}|~{3,})[^\n]*$", re.MULTILINE)
_TABLE: Final = re.compile(r"(?:^[ \t]*\|[^\n]*(?:\n|\Z))+", re.MULTILINE)


def split_units(text: str) -> list[tuple[int, int]]:
    """Spans of the units of a text, in order; code fences and tables are one unit each."""
    spans: list[tuple[int, int]] = []
    position = 0
    for start, end in _find_blocks(text):
        spans.extend(_sentences(text, position, start))
        spans.append((start, end))
        position = end
    spans.extend(_sentences(text, position, len(text)))
    return spans


def is_block(unit: str) -> bool:
    """Tell whether a unit is a code block or a table."""
    return unit.lstrip().startswith(("```", "~~~", "|"))


def _find_blocks(text: str) -> list[tuple[int, int]]:
    blocks: list[tuple[int, int]] = []
    position = 0
    while True:
        fence = _FENCE.search(text, position)
        end_of_prose = fence.start() if fence else len(text)
        blocks.extend(
            (table.start(), table.start() + len(table.group().rstrip()))
            for table in _TABLE.finditer(text, position, end_of_prose)
        )
        if fence is None:
            return blocks
        closing = re.compile(
            rf"^[ \t]*{re.escape(fence.group('mark'))}[`~]*[ \t]*$", re.MULTILINE
        ).search(text, fence.end())
        position = closing.end() if closing else len(text.rstrip())
        blocks.append((fence.start(), position))
        if closing is None:
            return blocks


def _sentences(text: str, start: int, end: int) -> list[tuple[int, int]]:
    return [(start + low, start + high) for low, high in split_sentences(text[start:end])]
