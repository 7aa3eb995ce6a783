"""Paragraphs, displayed formulas, tables, link references, footnotes, and lines without text."""

from __future__ import annotations

import bisect
import re
from typing import TYPE_CHECKING, Final

from markdown_it.rules_block import lheading as read_setext_heading
from markdown_it.rules_block import paragraph as read_paragraph
from markdown_it.rules_block import reference as read_reference
from markdown_it.rules_block import table as read_table
from mdit_py_plugins.footnote.index import footnote_def as read_footnote

from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.ingestion.markdown.construct import (
    ALL_TEXT,
    PARAGRAPHS,
    BlockRule,
    Construct,
    accept,
    begin_of,
    text_of,
)
from rag_pipeline.ingestion.markdown.constructs.directive import find_closing_mark, is_closed_by

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock

    from rag_pipeline.ingestion.markdown.construct import ReadBlock
    from rag_pipeline.ingestion.markdown.edits import BlockEdits


_START: Final = re.compile(r"(\${2,})([^$]*)")
_ALONE: Final = re.compile(r"\s*(\${2,})[^$]+\1\s*")
_OPEN_FROM: Final = "math_open_from"


def _read_formula(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
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


def _clean_formula(edits: BlockEdits, _start: int, _end: int) -> None:
    edits.keeps_blank_lines = True


MATH: Final = Construct(
    "math",
    _clean_formula,
    TextBlockKind.FORMULA,
    rules=(BlockRule("math", _read_formula, before="fence", ends=ALL_TEXT),),
    is_atomic=True,
)


def clean_away(edits: BlockEdits, start: int, end: int) -> None:
    """Record the edit that removes a whole block, because the block is only syntax."""
    edits.replace(start, end, "")


FRONT_MATTER: Final = Construct("front_matter", clean_away)
THEMATIC_BREAK: Final = Construct("thematic_break", clean_away, tokens=("hr",))
MARKER: Final = Construct("marker", clean_away, text_kind=None)
"""The mark of an empty list item or quote. The parser creates no block for it."""


FOOTNOTES: Final = "footnote_names"
"""Key in the parser's environment for the names of the footnotes that a page defines."""

_FOOTNOTE_DEFINITION: Final = re.compile(r"^ {0,3}\[\^([^\]\s]+)\]:", re.MULTILINE)


def find_footnotes(body: str) -> frozenset[str]:
    """Return the names of the footnotes that a page defines, such as `1` for `[^1]: text`."""
    return frozenset(_FOOTNOTE_DEFINITION.findall(body))


def _read(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """Parse a link reference definition at `start_line`; return True if there is one.

    A footnote definition such as `[^1]: text` is not a link reference definition.
    """
    if state.src.startswith("[^", begin_of(state, start_line)):
        return False
    if not read_reference(state, start_line, end_line, silent):
        return False
    if not silent:
        token = state.push(LINK_REFERENCE.name, "", 0)
        token.map = [start_line, state.line]
    return True


LINK_REFERENCE: Final = Construct(
    "link_reference",
    clean_away,
    rules=(
        BlockRule("reference", _read),
        BlockRule("footnote", read_footnote, before="reference", ends=PARAGRAPHS),
    ),
)


_MOST_INDENT: Final = 3  # columns; deeper indentation is code in CommonMark
_MOST_DEEP_LINES: Final = 50  # checked for each paragraph, so that parsing takes linear time
_DEEP_LINES: Final = "deep_lines"


def ignore_indent(rule: ReadBlock) -> ReadBlock:
    """Wrap a paragraph rule so that lines indented by four or more columns can end the paragraph.

    CommonMark would read such a line as a continuation of the paragraph. MDX has no indented code,
    so a code fence or list may be indented that far.
    """

    def read(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
        deep: list[int] | None = state.env.get(_DEEP_LINES)
        if deep is None:
            lines = range(state.lineMax)
            deep = [line for line in lines if state.sCount[line] > _MOST_INDENT]
            state.env[_DEEP_LINES] = deep
        kept: dict[int, int] = {}
        first = bisect.bisect_right(deep, start_line)
        for line in deep[first : first + _MOST_DEEP_LINES]:
            if line >= end_line:
                break
            if state.sCount[line] - state.blkIndent > _MOST_INDENT:
                kept[line] = state.sCount[line]
                state.sCount[line] = state.blkIndent + _MOST_INDENT
        try:
            return rule(state, start_line, end_line, silent)
        finally:
            for line, indent in kept.items():
                state.sCount[line] = indent

    return read


def clean_text(edits: BlockEdits, start: int, end: int) -> None:
    """Record the edits that clean a block of Markdown text.

    Tags, comments, escapes, the targets of links and hidden elements are removed.
    """
    edits.clean_inline(start, end)


PARAGRAPH: Final = Construct(
    "paragraph",
    clean_text,
    TextBlockKind.PARAGRAPH,
    tokens=("paragraph_open",),
    rules=(
        BlockRule("lheading", ignore_indent(read_setext_heading), only_mdx=True),
        BlockRule("paragraph", ignore_indent(read_paragraph), only_mdx=True),
    ),
)


def _clean(edits: BlockEdits, start: int, end: int) -> None:
    edits.keeps_escaped_bars = True
    clean_text(edits, start, end)


# markdown-it tries tables before lists, so it would make the mark of `1. a | b` part of a table.
# This rule is therefore tried later.
TABLE: Final = Construct(
    "table",
    _clean,
    TextBlockKind.TABLE,
    tokens=("table_open",),
    rules=(BlockRule("gfm_table", read_table, before="lheading", ends=PARAGRAPHS),),
    is_atomic=True,
)
