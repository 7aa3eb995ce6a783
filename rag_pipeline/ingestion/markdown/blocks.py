"""Split a page into leaf blocks, and a text into paragraphs, list items, tables and formulas.

A leaf block is a block that contains no other block.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from markdown_it.rules_core import StateCore

from rag_pipeline.core.models import TextBlock, TextBlockKind
from rag_pipeline.ingestion.markdown.construct import Leaf
from rag_pipeline.ingestion.markdown.constructs.code import MDX_CODE_FENCE, find_mdx_fences
from rag_pipeline.ingestion.markdown.constructs.heading import HEADING, split_raw_headings
from rag_pipeline.ingestion.markdown.constructs.math import is_displayed_formula
from rag_pipeline.ingestion.markdown.constructs.text import (
    FOOTNOTES,
    MARKER,
    PARAGRAPH,
    find_footnotes,
)
from rag_pipeline.ingestion.markdown.containers import (
    CONTAINER_TOKENS,
    find_chains,
    read_containers,
)
from rag_pipeline.ingestion.markdown.registry import CONSTRUCT_OF_TOKEN, build_parser
from rag_pipeline.ingestion.markdown.tags import SCANNER, Scanner

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from markdown_it.token import Token

    from rag_pipeline.core.models import Container
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


Piece: TypeAlias = "tuple[TextBlockKind | None, tuple[Container, ...], int, int, int, int, bool]"
"""A block without inner blocks: kind, containers, offsets, lines, and if it begins with a link.

Lines count from 1; the last line is inclusive. A block whose kind is None is not listed.
"""

_LINE_END: Final = re.compile(r"\r\n?|\n")
_LINK: Final = re.compile(
    r"[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+(?:\[[ xX]\][ \t]+)?)*[*_~]*\[[^]\n]+\][(\[]"
)
"""A link at the start of a block, after list marks, quote marks and emphasis."""
_UNREADABLE: Final = re.compile("[\0\ud800-\udfff]")


def find_text_blocks(text: str) -> tuple[TextBlock, ...]:
    r"""Find the blocks of any Markdown text, such as a reader's selection or a model's answer.

    The text is parsed as CommonMark with tables, admonitions and formulas. No text causes an
    error. Blocks consist of whole lines: a block starts at the first character of its first line,
    including indentation and list marks, and ends before the line end of its last line.

    A list is followed by its items. Items, quotes and admonitions are followed by the blocks
    inside them, except that the paragraphs of an item are not listed. A formula block is either
    `$$` to `$$` on lines of their own, which also ends the paragraph before it, or a paragraph
    that contains only `$$...$$`. A `$$...$$` next to other text is part of its paragraph.

    Returns:
        Blocks by ascending start, each before the blocks inside it. Blocks that are not nested do
        not overlap. Every non-blank character is in a block.
    """
    readable = _UNREADABLE.sub("\ufffd", text)
    starts, ends = [0], []
    for match in _LINE_END.finditer(readable):
        ends.append(match.start())
        starts.append(match.end())
    ends.append(len(readable))
    lines = [readable[start:end] for start, end in zip(starts, ends, strict=True)]
    leaves, containers, _ = read_leaves(lines, 0, mdx=False)
    chains = find_chains(containers, [leaf.start for leaf in leaves])
    pieces: list[Piece] = []
    for leaf, chain in zip(leaves, chains, strict=True):
        start, end = starts[leaf.start], ends[leaf.end - 1]
        kind = choose_kind(leaf.construct.text_kind, readable[start:end], chain)
        links = begins_with_link(readable, start)
        pieces.append((kind, chain, start, end, leaf.start + 1, leaf.end, links))
    return nest_blocks(pieces)


def begins_with_link(text: str, start: int) -> bool:
    """Return True if a block of a Markdown text, which starts at an offset, begins with a link."""
    return _LINK.match(text, start) is not None


def choose_kind(
    kind: TextBlockKind | None, text: str, containers: tuple[Container, ...]
) -> TextBlockKind | None:
    """Return the kind that a block has in the list of a text's blocks; None if it is left out.

    The paragraphs of a list item are left out, because the list contains the item. A paragraph that
    contains only a formula has the kind of a formula. A container mark outside all containers has
    the kind `OTHER`.

    Args:
        kind: Kind that the block's construct declares; None for the mark of a container.
        text: Text of the block.
        containers: Number and kind of each container around the block, the outermost first.
    """
    if kind is TextBlockKind.PARAGRAPH:
        if is_displayed_formula(text):
            return TextBlockKind.FORMULA
        listed = [container.kind for container in containers if container.kind is not None]
        return None if listed[-1:] == [TextBlockKind.LIST_ITEM] else kind
    is_outside = all(container.kind is None for container in containers)
    return TextBlockKind.OTHER if kind is None and is_outside else kind


def nest_blocks(pieces: Iterable[Piece]) -> tuple[TextBlock, ...]:
    """Return the containers and blocks of a text, each container before the blocks inside it.

    A container reaches from the start of its first piece to the end of its last piece.

    Args:
        pieces: Blocks that contain no other block, in the order of the text. Blocks whose kind is
            None are left out, but count for the extent of their containers.
    """
    found: list[TextBlock] = []
    place_of: dict[Container, int] = {}
    for kind, containers, start, end, first, last, links in pieces:
        for container in containers:
            if container.kind is None:
                continue
            at = place_of.setdefault(container, len(found))
            if at == len(found):
                found.append(TextBlock(container.kind, start, end, first, last, links))
            else:
                found[at] = replace(found[at], end=end, end_line=last)
        if kind is not None:
            found.append(TextBlock(kind, start, end, first, last, links))
    return tuple(found)
