"""Find the images and diagrams that stand beside a quoted passage."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from rag_pipeline.core.models import Figure, TextBlockKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_pipeline.answering.models import Source
    from rag_pipeline.core.models import TextBlock

MOST_FIGURES: Final = 3
"""Figures that are shown beside one passage."""

_MERMAID: Final = re.compile(
    r"[\s>*+-]*(`{3,}|~{3,})[ \t]*mermaid\b[^\n]*\n(?P<source>.*)", re.DOTALL
)
_LAST_FENCE: Final = re.compile(r"\n[\s>]*(?:`{3,}|~{3,})\s*$")


def find_figures(source: Source, start_line: int, end_line: int) -> tuple[Figure, ...]:
    """Return the figures inside a passage of a source, and those with no other text between.

    Images of other hosts than that of the page are left out, because they would be remote.

    Args:
        source: The source of the passage.
        start_line: First line of the passage in the document's file.
        end_line: Last line, inclusive.
    """
    shown = (*list_shown(source), *_list_diagrams(source))
    beside = [
        figure
        for figure in shown
        if not _is_apart(source.blocks, figure.line, start_line, end_line)
    ]
    return tuple(sorted(beside, key=lambda figure: figure.line)[:MOST_FIGURES])


def list_shown(source: Source) -> Iterator[Figure]:
    """Yield the images of a source that are not remote."""
    own = urlsplit(source.citation.url).netloc
    for figure in source.figures:
        if urlsplit(figure.address).netloc in {"", own}:
            yield figure


def _list_diagrams(source: Source) -> Iterator[Figure]:
    """Yield the Mermaid diagrams among the code blocks of a source."""
    for block in source.blocks:
        if block.kind is TextBlockKind.CODE:
            code = _MERMAID.match(source.text[block.start : block.end])
            if code is not None:
                text = _LAST_FENCE.sub("", code["source"]).strip()
                yield Figure("diagram", "", text, "", block.start_line)


def _is_apart(blocks: Sequence[TextBlock], line: int, start_line: int, end_line: int) -> bool:
    """Return True if a block lies between a line and the lines of a passage."""
    low, high = (end_line, line) if line > end_line else (line, start_line)
    return not start_line <= line <= end_line and any(
        low < block.start_line and block.end_line < high for block in blocks
    )
