"""Split the lines of a page into leaf blocks, such as headings, code fences and tables.

A leaf block is a block that contains no other block.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from markdown_it.rules_core import StateCore

from rag_pipeline.ingestion.markdown.construct import Leaf
from rag_pipeline.ingestion.markdown.constructs.code import MDX_CODE_FENCE, find_mdx_fences
from rag_pipeline.ingestion.markdown.constructs.heading import HEADING, split_raw_headings
from rag_pipeline.ingestion.markdown.constructs.marks import MARKER
from rag_pipeline.ingestion.markdown.constructs.paragraph import PARAGRAPH
from rag_pipeline.ingestion.markdown.constructs.reference import FOOTNOTES, find_footnotes
from rag_pipeline.ingestion.markdown.containers import CONTAINER_TOKENS, read_containers
from rag_pipeline.ingestion.markdown.mdx_syntax import SCANNER, Scanner
from rag_pipeline.ingestion.markdown.registry import CONSTRUCT_OF_TOKEN, build_parser

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from markdown_it.token import Token

    from rag_pipeline.ingestion.markdown.containers import ContainerLines

_MARKER_LINE: Final = re.compile(r"[\s>]*(?:(?:[-+*]|\d{1,9}[.)])[\s>]*)*")


class _KeptTokens(list["Token"]):
    """The tokens of a page that leaf blocks and containers are read from.

    The parser makes many more, such as several for each cell of a table.
    """

    def append(self, token: Token) -> None:
        """Add a token if it is needed; the text of a heading follows the heading's own token."""
        is_heading = bool(self) and CONSTRUCT_OF_TOKEN.get(self[-1].type) is HEADING
        if (
            token.type in CONSTRUCT_OF_TOKEN
            or token.type in CONTAINER_TOKENS
            or (is_heading and token.type == "inline")
        ):
            super().append(token)


def read_leaves(
    lines: Sequence[str], body_line: int, *, mdx: bool
) -> tuple[list[Leaf], list[ContainerLines], dict[str, Any]]:
    """Split the body of a Markdown page into leaf blocks, and find the containers around them.

    A leaf block contains no other block. Containers are lists, list items, quotes and admonitions.

    Args:
        lines: All lines of the page, without line ends.
        body_line: Index of the first line after the front matter. Earlier lines are ignored.
        mdx: True if the page is MDX; False if it is CommonMark with HTML.

    Returns:
        Three values. First, the leaf blocks in source order; every non-blank line of the body is
        in exactly one of them. Second, the containers. Third, the environment of the parser, which
        contains the link reference definitions of the page.
    """
    fence_lines = find_mdx_fences(lines, body_line)
    masked = list(lines[body_line:])
    for line in fence_lines:
        masked[line - body_line] = ""
    body = "\n".join(masked)
    env: dict[str, Any] = {SCANNER: Scanner(body, mdx=mdx), FOOTNOTES: find_footnotes(body)}
    parser = build_parser(mdx=mdx)
    state = StateCore(body, parser, env)
    state.tokens = tokens = _KeptTokens()
    parser.core.process(state)
    leaves = [Leaf(MDX_CODE_FENCE, line, line + 1) for line in fence_lines]
    leaves += _read_tokens(tokens, body_line)
    leaves.sort(key=lambda leaf: (leaf.start, leaf.end))
    filled = list(_fill_gaps(split_raw_headings(leaves, lines), lines, body_line))
    return filled, read_containers(tokens, body_line, len(lines)), env


def _read_tokens(tokens: Sequence[Token], body_line: int) -> Iterator[Leaf]:
    for at, token in enumerate(tokens):
        construct = CONSTRUCT_OF_TOKEN.get(token.type)
        if construct is None or token.map is None:
            continue
        start, end = token.map[0] + body_line, token.map[1] + body_line
        if construct is HEADING:
            yield Leaf(construct, start, end, int(token.tag[1]), tokens[at + 1].content)
        else:
            yield Leaf(construct, start, end)


def _fill_gaps(leaves: Iterable[Leaf], lines: Sequence[str], body_line: int) -> Iterator[Leaf]:
    """Add leaf blocks for the lines that no leaf covers, so that no text of a page is lost.

    Blank lines at the edges of a leaf are cut off, and overlapping leaves are shortened.

    Yields:
        Leaf blocks in source order; every non-blank line from `body_line` on is in exactly one.
    """
    at = body_line
    for leaf in [*leaves, Leaf(MARKER, len(lines), len(lines))]:
        yield from _read_gap(lines, at, leaf.start)
        start, end = max(leaf.start, at), leaf.end
        while end > start and not lines[end - 1].strip():
            end -= 1
        while start < end and not lines[start].strip():
            start += 1
        if start < end:
            is_same = (start, end) == (leaf.start, leaf.end)
            yield leaf if is_same else replace(leaf, start=start, end=end)
            at = end


def _read_gap(lines: Sequence[str], start: int, end: int) -> Iterator[Leaf]:
    at = start
    while at < end:
        if not lines[at].strip():
            at += 1
            continue
        if _MARKER_LINE.fullmatch(lines[at]):
            yield Leaf(MARKER, at, at + 1)
            at += 1
            continue
        first = at
        while at < end and lines[at].strip():
            at += 1
        yield Leaf(PARAGRAPH, first, at)
