"""Lines without text: front matter, thematic breaks, and empty list items and quote lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rag_pipeline.ingestion.markdown.construct import Construct

if TYPE_CHECKING:
    from rag_pipeline.ingestion.markdown.edits import BlockEdits


def clean_away(edits: BlockEdits, start: int, end: int) -> None:
    """Record the edit that removes a whole block, because the block is only syntax."""
    edits.keep_only([], start, end)


FRONT_MATTER: Final = Construct("front_matter", clean_away)
THEMATIC_BREAK: Final = Construct("thematic_break", clean_away, tokens=("hr",))
MARKER: Final = Construct("marker", clean_away, text_kind=None)
"""The mark of an empty list item or quote. The parser creates no block for it."""
