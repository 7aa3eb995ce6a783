"""Find containers: the lists, list items, quotes and admonitions that contain other blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.models import Container, TextBlockKind
from rag_pipeline.ingestion.markdown.constructs.directive import DIRECTIVE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from markdown_it.token import Token

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
CONTAINER_TOKENS: Final = frozenset(_KIND_OF_TOKEN) | _CLOSING
"""The types of tokens that open or close a container."""

_MOST_NESTED: Final = 80  # containers; an admonition that is nested deeper is not listed


@dataclass(slots=True)
class ContainerLines:
    """The lines of one container: a list, a list item, a quote or an admonition.

    Attributes:
        start: Index of the first line, 0-based.
        end: Index of the line after the last line.
        chain: Number and kind of each container around this one, the outermost first, and of this
            container as the last entry. A number is unique within the text.
        colons: Number of colons in the opening mark of an admonition. Meaningless for others.
    """

    start: int
    end: int
    chain: tuple[Container, ...]
    colons: int

    @property
    def is_admonition(self) -> bool:
        """True if the container is an admonition, which `:::` lines open and close."""
        return self.chain[-1].kind is TextBlockKind.ADMONITION


def read_containers(
    tokens: Sequence[Token], first_line: int, last_line: int
) -> list[ContainerLines]:
    """Find the lists, list items, quotes and admonitions in the tokens of a Markdown parser.

    Args:
        tokens: All block tokens of a text.
        first_line: Index of the source line that the parser counts as line 0.
        last_line: Index of the line after the last line of the source.

    Returns:
        Containers in the order of their first lines, each before the containers inside it. An
        admonition ends with its closing `:::` line. An admonition that is never closed ends with
        the container around it, or with the text.
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
        chain = (*around, Container(len(found), kind))
        opened.append(ContainerLines(start, end, chain, len(token.markup)))
        found.append(opened[-1])
    return found


def _close_admonition(opened: list[ContainerLines], line: int, colons: int) -> None:
    """Close the outermost open admonition that a closing mark of `colons` colons can close.

    As in Docusaurus, the closing mark needs at least as many colons as the opening mark. A mark
    with fewer colons than every open admonition closes nothing. Admonitions inside the closed one
    end before the line of the mark. The function sets the end lines and removes the closed
    admonitions from `opened`. Admonitions around the innermost list or quote stay open.
    """
    first = len(opened)
    while first and opened[first - 1].is_admonition:
        first -= 1
    closed = next((n for n in range(first, len(opened)) if opened[n].colons <= colons), None)
    if closed is None:
        return
    for admonition in opened[closed:]:
        admonition.end = line
    opened[closed].end = line + 1
    del opened[closed:]


def find_chains(
    containers: Sequence[ContainerLines], lines: Iterable[int]
) -> list[tuple[Container, ...]]:
    """Return the containers around each of the given lines.

    Args:
        containers: Containers of the text, as `read_containers` returns them.
        lines: Indexes of lines in ascending order.

    Returns:
        For each line the containers around it, the outermost first, each with its number (unique
        within the text) and kind. Empty for a line outside all containers.
    """
    chains: list[tuple[Container, ...]] = []
    chain: tuple[Container, ...] = ()
    following = 0
    for line in lines:
        while following < len(containers) and containers[following].start <= line:
            chain = containers[following].chain
            following += 1
        while chain and containers[chain[-1].number].end <= line:
            chain = chain[:-1]
        chains.append(chain)
    return chains
