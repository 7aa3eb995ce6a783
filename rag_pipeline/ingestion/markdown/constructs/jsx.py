"""Tags and `{...}` expressions of MDX that are on lines of their own.

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
from rag_pipeline.ingestion.markdown.constructs.html import COMMENT
from rag_pipeline.ingestion.markdown.props import Piece
from rag_pipeline.ingestion.markdown.tags import (
    SCANNER,
    find_literal,
    is_comment_expression,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markdown_it.rules_block import StateBlock

    from rag_pipeline.ingestion.markdown.edits import BlockEdits
    from rag_pipeline.ingestion.markdown.tags import Scanner

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
    at = start
    for piece in pieces:
        edits.replace(at, piece.start, piece.separate("\n") if at > start else piece.prefix)
        if piece.text is not None:
            edits.replace(piece.start, piece.end, piece.text)
        at = piece.end
    edits.replace(at, end, "")


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
        literal = find_literal(scanner.text, at, close) if char == "{" else []
        if char == "<":
            yield from edits.scope.read_tag(scanner, at, close)
        elif literal:
            yield Piece(*literal[0])
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
