"""HTML blocks, HTML comments, and the `import` and `export` statements of MDX pages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.ingestion.markdown.construct import (
    ALL_TEXT,
    BlockRule,
    Construct,
    accept,
    begin_of,
    find_line,
)
from rag_pipeline.ingestion.markdown.constructs.text import clean_away, clean_text
from rag_pipeline.ingestion.markdown.tags import SCANNER

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock

    from rag_pipeline.ingestion.markdown.tags import Scanner


_START: Final = re.compile(
    r"""(?:import\s*(?:["'{*]|[\w$]+\s*,|[\w$]+\s+from\b|type\b)"""
    r"""|export\s*(?:[{*]|default\b|(?:const|let|var|function|class|async|type|interface)\s))"""
)


def begins_statement(line: str) -> bool:
    """Return True if a line begins an `import` or `export` statement.

    A line of prose that begins with the word "import" or "export" returns False.
    """
    return _START.match(line) is not None


def _read(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """Parse an `import` or `export` statement at `start_line`; return True if there is one.

    The statement must begin in the first column. It usually ends at a blank line.
    """
    start = state.bMarks[start_line]
    if state.tShift[start_line] or state.blkIndent or state.src[start - 1 : start].strip():
        return False
    if not begins_statement(state.src[start : state.eMarks[start_line]]):
        return False
    if silent:
        return True
    scanner: Scanner = state.env[SCANNER]
    end = scanner.find_statement_end(start, state.eMarks[end_line - 1])
    return accept(state, ESM.name, start_line, find_line(state, start_line, end) + 1)


ESM: Final = Construct(
    "esm", clean_away, rules=(BlockRule("esm", _read, before="fence", only_mdx=True),)
)


_OPEN_FROM: Final = "comment_open_from"


def _read_comment(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """Parse an HTML comment `<!-- ... -->` at `start_line`; return True if there is one.

    The comment may contain blank lines. The block ends with the line on which the comment ends. If
    other text follows the comment on that line, the block is an HTML block instead.
    """
    start = begin_of(state, start_line)
    if not state.src.startswith("<!--", start):
        return False
    never: int = state.env.get(_OPEN_FROM, len(state.src))
    end = -1 if start >= never else state.src.find("-->", start + 4, state.eMarks[end_line - 1])
    if end < 0:
        if end_line == len(state.bMarks) - 1:
            state.env[_OPEN_FROM] = min(start, never)
        return False
    if silent:
        return True
    line = find_line(state, start_line, end)
    is_whole = not state.src[end + 3 : state.eMarks[line]].strip()
    return accept(state, (COMMENT if is_whole else HTML).name, start_line, line + 1)


HTML: Final = Construct(
    "html",
    clean_text,
    TextBlockKind.HTML,
    tokens=("html_block",),
    off_in_mdx=("html_block",),
)
COMMENT: Final = Construct(
    "comment",
    clean_away,
    TextBlockKind.HTML,
    rules=(BlockRule("comment", _read_comment, before="fence", ends=ALL_TEXT, only_mdx=True),),
)
