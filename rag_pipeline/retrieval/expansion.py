"""Widening a hit by its neighbours in the same section: an answer sees the whole thought."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rag_pipeline.core.payload import ChunkMetadata, read_metadata, read_text
from rag_pipeline.core.protocols.stores import PointFilter
from rag_pipeline.retrieval.candidates import section_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rag_pipeline.core.protocols.stores import VectorIndex

Piece = tuple[ChunkMetadata, str]
"""A chunk's metadata and text."""


def read_sections(index: VectorIndex, doc_paths: Sequence[str]) -> dict[str, list[Piece]]:
    """All chunks of some documents by section, in reading order."""
    sections: dict[str, list[Piece]] = {}
    if not doc_paths:
        return sections
    for point in index.scroll(PointFilter.any_of(doc_path=tuple(sorted(set(doc_paths))))):
        metadata = read_metadata(point.payload)
        sections.setdefault(_name_section(metadata), []).append(
            (metadata, read_text(point.payload))
        )
    for pieces in sections.values():
        pieces.sort(key=lambda piece: piece[0].chunk_index)
    return sections


def expand(
    hit: ChunkMetadata, text: str, sections: Mapping[str, list[Piece]], budget_tokens: int
) -> str:
    """The hit's text with the neighbours that fit, the one behind and the one before in turns.

    Args:
        hit: Metadata of the hit.
        text: Its text, returned as it is where no neighbour fits.
        sections: Of `read_sections`.
        budget_tokens: Bound on the sum of the chunks' own token counts; overlaps count twice.
    """
    pieces = sections.get(_name_section(hit), [])
    at = next((i for i, (piece, _) in enumerate(pieces) if piece.chunk_id == hit.chunk_id), None)
    if at is None:
        return text
    first, last, spent = at, at, hit.token_count
    grown = True
    while grown:
        grown = False
        for step in (1, -1):
            edge = last + 1 if step == 1 else first - 1
            if not 0 <= edge < len(pieces):
                continue
            tokens = pieces[edge][0].token_count
            if spent + tokens > budget_tokens or not _adjoin(pieces, edge, edge - step):
                continue
            spent += tokens
            first, last = min(first, edge), max(last, edge)
            grown = True
    return join_pieces(pieces[first : last + 1])


def join_pieces(pieces: Sequence[Piece]) -> str:
    """Join chunks that follow each other, the overlap of each with the one before said once."""
    joined = pieces[0][1]
    for (before, _), (piece, text) in pairwise(pieces):
        overlap = 0
        if piece.start_byte < before.end_byte:
            longest = min(len(joined), len(text), before.end_byte - piece.start_byte)
            overlap = next((n for n in range(longest, 0, -1) if joined.endswith(text[:n])), 0)
        joined += text[overlap:] if overlap else f"\n\n{text}"
    return joined


def _adjoin(pieces: Sequence[Piece], one: int, other: int) -> bool:
    return abs(pieces[one][0].chunk_index - pieces[other][0].chunk_index) == 1


def _name_section(metadata: ChunkMetadata) -> str:
    return section_of(metadata.doc_path, metadata.anchor, metadata.section_heading)
