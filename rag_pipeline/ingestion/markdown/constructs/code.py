"""Code blocks: fences, indented code, and `mdx-code-block` fences.

The content of an `mdx-code-block` fence is not code; it is parsed as Markdown.
"""

from __future__ import annotations

import bisect
import re
from typing import TYPE_CHECKING, Final

from markdown_it.rules_block import fence as read_fence

from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.ingestion.markdown.construct import ALL_TEXT, BlockRule, Construct
from rag_pipeline.ingestion.markdown.constructs.directive import find_closing_mark, is_closed_by
from rag_pipeline.ingestion.markdown.constructs.marks import clean_away

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it.rules_block import StateBlock

    from rag_pipeline.ingestion.markdown.edits import BlockEdits

_MAGIC_COMMENT: Final = re.compile(
    r"^[ \t>]*(?://|/\*|\{\s*/\*|\#|<!--|--|;;|%|'|REM|!|\*>)\s*"
    r"highlight-(?:next-line|start|end)\s*(?:\*/\s*\}|\*/|-->)?[ \t]*(?:\n|\Z)",
    re.MULTILINE,
)
_MDX_OPEN: Final = re.compile(r" *(`{3,4}) *mdx-code-block")
_MDX_CLOSE: Final = re.compile(r" *(`{3,4})")


def _read(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """Parse a code fence that starts at `start_line`; return True if there is one.

    If the fence is inside a directive such as an admonition, the directive's closing `:::` line
    also ends the fence.
    """
    if not read_fence(state, start_line, end_line, silent):
        return False
    if silent:
        return True
    closing = find_closing_mark(state, start_line)
    if closing is None:
        return True
    for line in range(start_line + 1, state.line):
        if is_closed_by(state, line, closing):
            state.line = line
            state.tokens[-1].map = [start_line, line]
            break
    return True


def _clean(edits: BlockEdits, start: int, end: int) -> None:
    edits.keeps_blank_lines = True
    for match in _MAGIC_COMMENT.finditer(edits.source, start, end):
        edits.replace(match.start(), match.end(), "")


def find_mdx_fences(lines: Sequence[str], body_line: int) -> list[int]:
    """Return the indexes of the opening and closing lines of all `mdx-code-block` fences.

    Args:
        lines: All lines of the page.
        body_line: Index of the first line to search.

    Returns:
        Line indexes in ascending order. Fences that are never closed are left out.
    """
    found: list[int] = []
    closers: dict[str, list[int]] = {"```": [], "````": []}
    for at in range(body_line, len(lines)):
        close = _MDX_CLOSE.fullmatch(lines[at])
        if close is not None:
            closers[close.group(1)].append(at)
    until = body_line
    for at in range(body_line, len(lines)):
        opening = _MDX_OPEN.fullmatch(lines[at]) if at >= until else None
        if opening is None:
            continue
        possible = closers[opening.group(1)]
        index = bisect.bisect_right(possible, at + 1)
        if index < len(possible):
            until = possible[index] + 1
            found += [at, until - 1]
    return found


CODE: Final = Construct(
    "code",
    _clean,
    TextBlockKind.CODE,
    tokens=("fence", "code_block"),
    rules=(BlockRule("fence", _read, ends=ALL_TEXT),),
    off_in_mdx=("code",),
    is_atomic=True,
)
MDX_CODE_FENCE: Final = Construct("mdx_code_fence", clean_away)
