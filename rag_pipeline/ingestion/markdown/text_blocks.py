"""Find the blocks of a text: paragraphs, lists with their items, tables, formulas and so on."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from rag_pipeline.core.models import TextBlock, TextBlockKind
from rag_pipeline.ingestion.markdown.blocks import read_leaves
from rag_pipeline.ingestion.markdown.constructs.math import is_displayed_formula
from rag_pipeline.ingestion.markdown.containers import find_chains

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rag_pipeline.core.models import Container

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
