"""The `import` and `export` statements of MDX pages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rag_pipeline.ingestion.markdown.construct import BlockRule, Construct, accept, find_line
from rag_pipeline.ingestion.markdown.constructs.marks import clean_away
from rag_pipeline.ingestion.markdown.mdx_syntax import SCANNER

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock

    from rag_pipeline.ingestion.markdown.mdx_syntax import Scanner

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
