"""Displayed formulas, written between two `$$` marks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.ingestion.markdown.construct import (
    ALL_TEXT,
    BlockRule,
    Construct,
    accept,
    text_of,
)
from rag_pipeline.ingestion.markdown.constructs.directive import find_closing_mark, is_closed_by

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock

    from rag_pipeline.ingestion.markdown.edits import BlockEdits

_START: Final = re.compile(r"(\${2,})([^$]*)")
_ALONE: Final = re.compile(r"\s*(\${2,})[^$]+\1\s*")
_OPEN_FROM: Final = "math_open_from"


def _read(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """Parse a formula from `$$` to `$$` at `start_line`; return True if there is one.

    The opening mark must begin a line, and the closing mark must end a later line. A formula that
    is never closed is plain text.
    """
    match = _START.fullmatch(text_of(state, start_line))
    if match is None or state.is_code_block(start_line):
        return False
    marker = match.group(1)
    never: int = state.env.get(_OPEN_FROM, len(state.src))
    if state.bMarks[start_line] >= never:
        return False
    closing = find_closing_mark(state, start_line)
    is_inside = not _is_outside(state, start_line)  # if False, it ends the list item above
    for line in range(start_line + 1, end_line):
        if is_inside and not state.isEmpty(line) and _is_outside(state, line):
            break
        if closing is not None and is_closed_by(state, line, closing):
            break
        if text_of(state, line).rstrip().endswith(marker):
            return silent or accept(state, MATH.name, start_line, line + 1)
    else:
        if end_line == len(state.bMarks) - 1:
            state.env[_OPEN_FROM] = state.bMarks[start_line]
    return False


def _is_outside(state: StateBlock, line: int) -> bool:
    """Return True if a line is indented less than the content of the container being parsed."""
    return state.sCount[line] < state.blkIndent


def is_displayed_formula(text: str) -> bool:
    """Return True if a paragraph contains only one formula, `$$...$$`."""
    return "$$" in text and _ALONE.fullmatch(text) is not None


def _clean(edits: BlockEdits, _start: int, _end: int) -> None:
    edits.keeps_blank_lines = True


MATH: Final = Construct(
    "math",
    _clean,
    TextBlockKind.FORMULA,
    rules=(BlockRule("math", _read, before="fence", ends=ALL_TEXT),),
    is_atomic=True,
)
