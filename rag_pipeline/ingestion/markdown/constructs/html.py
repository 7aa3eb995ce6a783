"""HTML, comments, and the statements, tags and `{...}` expressions of MDX on lines of their own.

The content between an opening and a closing tag is parsed as Markdown, so a heading in a tab is a
heading.
"""

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
from rag_pipeline.ingestion.markdown.constructs.text import clean_away
from rag_pipeline.ingestion.markdown.edits import BlockEdits
from rag_pipeline.ingestion.markdown.tags import SCANNER, Piece, is_comment_expression

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markdown_it.rules_block import StateBlock

    from rag_pipeline.ingestion.markdown.tags import Scanner


# Prose may begin with the word "import" or "export" too.
_START: Final = re.compile(
    r"""(?:import\s*(?:["'{*]|[\w$]+\s*,|[\w$]+\s+from\b|type\b)"""
    r"""|export\s*(?:[{*]|default\b|(?:const|let|var|function|class|async|type|interface)\s))"""
)


def _read_statement(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """Parse an `import` or `export` statement at `start_line`; return True if there is one.

    The statement must begin in the first column. It usually ends at a blank line.
    """
    start = state.bMarks[start_line]
    if state.tShift[start_line] or state.blkIndent or state.src[start - 1 : start].strip():
        return False
    next_line = min(start_line + 1, end_line - 1)  # `from` may be there
    if _START.match(state.src, start, state.eMarks[next_line]) is None:
        return False
    if silent:
        return True
    scanner: Scanner = state.env[SCANNER]
    end = scanner.find_statement_end(start, state.eMarks[end_line - 1])
    return accept(state, ESM.name, start_line, find_line(state, start_line, end) + 1)


ESM: Final = Construct(
    "esm", clean_away, rules=(BlockRule("esm", _read_statement, before="fence", only_mdx=True),)
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
    BlockEdits.clean_inline,
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


_HIDDEN_TAG: Final = re.compile(r"<(style|script)\b[^>]*(?<!/)>")


def _read(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """Parse lines with only tags and `{...}` expressions; return True if there are any.

    The block is JSX if it contains a tag, a comment if it contains only comments, and otherwise an
    expression. Lines with text next to a tag are left to the rule for paragraphs.
    """
    at = begin_of(state, start_line)
    if state.src[at : at + 1] not in {"<", "{"}:
        return False
    scanner: Scanner = state.env[SCANNER]
    limit = state.eMarks[end_line - 1]
    construct = COMMENT
    while state.src[at : at + 1] in {"<", "{"}:
        if state.src[at] == "{":
            end = scanner.find_brace_end(at, limit)
            is_comment = end is not None and is_comment_expression(state.src[at:end])
            construct = construct if is_comment or construct is JSX else EXPRESSION
        else:
            end = scanner.find_tag_end(at, limit)
            construct = JSX
            hidden = _HIDDEN_TAG.match(state.src, at, end) if end is not None else None
            if hidden is not None:
                close = state.src.find(f"</{hidden.group(1)}>", end, limit)
                end = close if close >= 0 else end
        if end is None:
            return False
        at = end
        while state.src[at : at + 1] in {" ", "\t"}:
            at += 1
    line = find_line(state, start_line, at - 1)
    if state.src[at : state.eMarks[line]].strip():
        return False
    return silent or accept(state, construct.name, start_line, line + 1)


def _clean(edits: BlockEdits, start: int, end: int) -> None:
    pieces = [
        piece
        for first, last in edits.remove_hidden(start, end)
        for piece in _find_texts(edits, first, last)
    ]
    edits.replace(edits.show(pieces, start, "\n"), end, "")


def _find_texts(edits: BlockEdits, start: int, end: int) -> Iterator[Piece]:
    """Yield the visible texts in a block of tags and expressions, in order.

    Visible texts are attribute values such as a tab's label, and expressions with a known value.
    """
    scanner, at = edits.scanner, start
    while at < end:
        char = scanner.text[at]
        find = {"<": scanner.find_tag_end, "{": scanner.find_brace_end}.get(char)
        close = find(at, end) if find is not None else None
        if close is None:
            at += 1
            continue
        if char == "<":
            yield from edits.scope.read_tag(scanner, at, close)
        elif value := edits.scope.resolve(scanner.text[at + 1 : close - 1]):
            yield Piece(at, close, value)
        at = close


JSX: Final = Construct(
    "jsx",
    _clean,
    TextBlockKind.HTML,
    rules=(BlockRule("jsx", _read, before="fence", ends=ALL_TEXT, only_mdx=True),),
    leads=True,
)
EXPRESSION: Final = Construct("expression", _clean)
