"""The blocks of a text that a reader sees: paragraphs, lists with their items, tables, formulas."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeAlias

from rag_pipeline.core.models import TextBlock, TextBlockKind
from rag_pipeline.ingestion.markdown.blocks import read_leaves
from rag_pipeline.ingestion.markdown.constructs.math import is_displayed_formula
from rag_pipeline.ingestion.markdown.containers import find_chains

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rag_pipeline.core.models import Container

Piece: TypeAlias = "tuple[TextBlockKind | None, tuple[Container, ...], int, int]"
"""Kind, containers, start and end of a block without blocks in it; a kind of None is not listed."""

_LINE_END: Final = re.compile(r"\r\n?|\n")
_UNREADABLE: Final = re.compile("[\0\ud800-\udfff]")


def find_text_blocks(text: str) -> tuple[TextBlock, ...]:
    r"""Find the blocks of any Markdown text, such as a reader's selection or a model's answer.

    The text is read as CommonMark with tables, admonitions and math; no text makes it raise.
    Blocks are runs of whole lines: a block starts at the first character of its first line,
    indentation and list marks included, and ends before the line end of its last line.

    A list is followed by its items. Items, quotes and admonitions are followed by the blocks in
    them, except that the paragraphs of an item are not listed on their own. A displayed formula
    is `$$` to `$$` on lines of their own, which also ends the paragraph before it, or a
    paragraph that is nothing but `$$...$$`. A `$$...$$` beside other text of a paragraph
    belongs to the paragraph.

    Returns:
        Blocks by ascending start, each before those within it. Blocks that do not lie within
        one another do not overlap. Every character that is not blank lies in a block.
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
        pieces.append((kind, chain, start, end))
    return nest_blocks(pieces)


def choose_kind(
    kind: TextBlockKind | None, text: str, containers: tuple[Container, ...]
) -> TextBlockKind | None:
    """Return the kind as which a block is listed; None if the container around it stands for it.

    Args:
        kind: The kind of its construct.
        text: The block.
        containers: The containers around it, the outermost first.
    """
    if kind is TextBlockKind.PARAGRAPH:
        if is_displayed_formula(text):
            return TextBlockKind.FORMULA
        is_in_item = bool(containers) and containers[-1][1] is TextBlockKind.LIST_ITEM
        return None if is_in_item else kind
    return TextBlockKind.OTHER if kind is None and not containers else kind


def nest_blocks(pieces: Iterable[Piece]) -> tuple[TextBlock, ...]:
    """Put containers before what they contain, each as long as the pieces in it."""
    found: list[tuple[TextBlockKind, int, int]] = []
    place_of: dict[Container, int] = {}
    for kind, containers, start, end in pieces:
        for container in containers:
            at = place_of.setdefault(container, len(found))
            if at == len(found):
                found.append((container[1], start, end))
            else:
                found[at] = (container[1], found[at][1], end)
        if kind is not None:
            found.append((kind, start, end))
    return tuple(TextBlock(*block) for block in found)
