"""Paragraphs, tables, link references, footnotes, and lines without text."""

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
from rag_pipeline.ingestion.markdown.construct import PARAGRAPHS, BlockRule, Construct, begin_of

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock

    from rag_pipeline.ingestion.markdown.construct import ReadBlock
    from rag_pipeline.ingestion.markdown.edits import BlockEdits


def clean_away(edits: BlockEdits, start: int, end: int) -> None:
    """Record the edit that removes a whole block, because the block is only syntax."""
    edits.keep_only([], start, end)


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
