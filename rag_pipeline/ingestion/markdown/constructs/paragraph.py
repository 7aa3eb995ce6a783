"""Paragraphs, and the cleaning of Markdown text that other kinds of blocks use too."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Final

from markdown_it.rules_block import lheading as read_setext_heading
from markdown_it.rules_block import paragraph as read_paragraph

from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.ingestion.markdown.construct import BlockRule, Construct

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock

    from rag_pipeline.ingestion.markdown.construct import ReadBlock
    from rag_pipeline.ingestion.markdown.edits import BlockEdits

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
