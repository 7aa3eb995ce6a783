"""Lists, their items, quotes and admonitions: the runs of lines that other blocks stand in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.models import BlockKind, TextBlockKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it.token import Token

_KIND_OF_TOKEN: Final = {
    "bullet_list_open": TextBlockKind.LIST,
    "ordered_list_open": TextBlockKind.LIST,
    "list_item_open": TextBlockKind.LIST_ITEM,
    "blockquote_open": TextBlockKind.QUOTE,
}
_CLOSING: Final = frozenset(name.replace("_open", "_close") for name in _KIND_OF_TOKEN)
_MOST_NESTED: Final = 80  # containers; an admonition that stands deeper is not listed


@dataclass(slots=True, eq=False)
class Container:
    """A run of lines, 0-based, `end` exclusive.

    Attributes:
        around: The containers around it, the outermost first.
        colons: Length of the mark that opened an admonition.
    """

    kind: TextBlockKind
    start: int
    end: int
    around: tuple[Container, ...]
    colons: int = 0


def read_containers(tokens: Sequence[Token], first_line: int, last_line: int) -> list[Container]:
    """Find the containers in a parser's tokens.

    Args:
        tokens: All block tokens of a text.
        first_line: Line of the source that the tokens count as 0.
        last_line: Line after the last one of the source.

    Returns:
        In the order of their first lines, each before those that it contains. An admonition
        ends with its closing line; one that is never closed ends with the container around it.
    """
    found: list[Container] = []
    opened: list[Container] = []
    for token in tokens:
        if token.type in _CLOSING:
            while opened.pop().kind is TextBlockKind.ADMONITION:
                pass
            continue
        kind = _KIND_OF_TOKEN.get(token.type)
        if token.map is None or (kind is None and token.type != BlockKind.DIRECTIVE):
            continue
        line, end = token.map[0] + first_line, token.map[1] + first_line
        if kind is None and token.nesting < 0:
            _close_admonition(opened, line, len(token.markup))
            continue
        if kind is None:
            if token.nesting == 0 or len(opened) >= _MOST_NESTED:
                continue
            kind = TextBlockKind.ADMONITION
            end = opened[-1].end if opened else last_line
        opened.append(Container(kind, line, end, tuple(opened), len(token.markup)))
        found.append(opened[-1])
    return found


def _close_admonition(opened: list[Container], line: int, colons: int) -> None:
    """End the innermost admonition of at most as many colons, and those within it."""
    while opened and opened[-1].kind is TextBlockKind.ADMONITION:
        closed = opened.pop()
        closed.end = line
        if closed.colons <= colons:
            closed.end = line + 1
            break


def find_chains(
    containers: Sequence[Container], lines: Sequence[int]
) -> list[tuple[Container, ...]]:
    """Return the containers around each line, the outermost first; the lines ascend."""
    chains: list[tuple[Container, ...]] = []
    chain: tuple[Container, ...] = ()
    following = 0
    for line in lines:
        while following < len(containers) and containers[following].start <= line:
            chain = (*containers[following].around, containers[following])
            following += 1
        while chain and chain[-1].end <= line:
            chain = chain[:-1]
        chains.append(chain)
    return chains
