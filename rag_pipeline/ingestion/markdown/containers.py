"""Lists, their items, quotes and admonitions: the runs of lines that other blocks stand in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.ingestion.markdown.constructs.directive import DIRECTIVE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from markdown_it.token import Token

    from rag_pipeline.core.models import Container

_KIND_OF_TOKEN: Final = {
    "bullet_list_open": TextBlockKind.LIST,
    "ordered_list_open": TextBlockKind.LIST,
    "list_item_open": TextBlockKind.LIST_ITEM,
    "blockquote_open": TextBlockKind.QUOTE,
    DIRECTIVE.name: TextBlockKind.ADMONITION,
}
_CLOSING: Final = frozenset(
    name.replace("_open", "_close") for name in _KIND_OF_TOKEN if name.endswith("_open")
)
_MOST_NESTED: Final = 80  # containers; an admonition that stands deeper is not listed


@dataclass(slots=True)
class ContainerLines:
    """The lines of a container, 0-based, `end` exclusive.

    Attributes:
        chain: The containers around it, the outermost first, then itself.
        colons: Length of the mark that opened an admonition.
    """

    start: int
    end: int
    chain: tuple[Container, ...]
    colons: int

    @property
    def is_admonition(self) -> bool:
        """Whether marker lines open and close it."""
        return self.chain[-1][1] is TextBlockKind.ADMONITION


def read_containers(
    tokens: Sequence[Token], first_line: int, last_line: int
) -> list[ContainerLines]:
    """Find the containers in a parser's tokens.

    Args:
        tokens: All block tokens of a text.
        first_line: Line of the source that the tokens count as 0.
        last_line: Line after the last one of the source.

    Returns:
        In the order of their first lines, each before those that it contains. An admonition
        ends with its closing line; one that is never closed ends with the container around it.
    """
    found: list[ContainerLines] = []
    opened: list[ContainerLines] = []
    for token in tokens:
        if token.type in _CLOSING:
            while opened.pop().is_admonition:
                pass
        kind = _KIND_OF_TOKEN.get(token.type)
        if kind is None or token.map is None:
            continue
        start, end = token.map[0] + first_line, token.map[1] + first_line
        if kind is TextBlockKind.ADMONITION:
            if token.nesting < 0:
                _close_admonition(opened, start, len(token.markup))
            if token.nesting <= 0 or len(opened) >= _MOST_NESTED:
                continue
            end = opened[-1].end if opened else last_line
        around = opened[-1].chain if opened else ()
        chain = (*around, (len(found), kind))
        opened.append(ContainerLines(start, end, chain, len(token.markup)))
        found.append(opened[-1])
    return found


def _close_admonition(opened: list[ContainerLines], line: int, colons: int) -> None:
    """End the innermost admonition of at most as many colons, and those within it."""
    while opened and opened[-1].is_admonition:
        closed = opened.pop()
        closed.end = line
        if closed.colons <= colons:
            closed.end = line + 1
            break


def find_chains(
    containers: Sequence[ContainerLines], lines: Iterable[int]
) -> list[tuple[Container, ...]]:
    """Return the containers around each line, the outermost first; the lines ascend."""
    chains: list[tuple[Container, ...]] = []
    chain: tuple[Container, ...] = ()
    following = 0
    for line in lines:
        while following < len(containers) and containers[following].start <= line:
            chain = containers[following].chain
            following += 1
        while chain and containers[chain[-1][0]].end <= line:
            chain = chain[:-1]
        chains.append(chain)
    return chains
