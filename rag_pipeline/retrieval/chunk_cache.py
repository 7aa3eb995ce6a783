"""A cache of the chunks that searches found: their metadata and texts."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.payload import read_metadata, read_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.payload import ChunkMetadata
    from rag_pipeline.core.protocols.stores import VectorIndex

Piece = tuple["ChunkMetadata", str]
"""The metadata and the text of a chunk."""

MAX_CACHED_CHUNKS: Final = 2_048
"""Largest number of chunks in the cache, about 20 MB. The chunks read first are dropped first."""


class ChunkCache:
    """A cache of checked chunks, because reading and checking a payload takes 0.1 ms.

    Args:
        lasting: True if the collection cannot change while it is open, as in the embedded store.
            If False, each look-up reads the store again.
    """

    def __init__(self, *, lasting: bool) -> None:
        self._lasting = lasting
        # A tuple that is replaced as a whole, so that no thread combines one collection with the
        # chunks of another. The newest chunks come first.
        self._read: tuple[VectorIndex | None, dict[PointId, Piece]] = (None, {})

    def look_up(self, index: VectorIndex, point_ids: Sequence[PointId]) -> dict[PointId, Piece]:
        """Return the metadata and text of each point id; ids that the store lacks are left out.

        Raises:
            PayloadError: A stored point has a missing or invalid payload field.
        """
        cached_index, cached = self._read
        known = cached if self._lasting and index is cached_index else {}
        found = {point_id: known[point_id] for point_id in point_ids if point_id in known}
        missing = [point_id for point_id in point_ids if point_id not in found]
        if missing:
            read = {
                point.point_id: (read_metadata(point.payload), read_text(point.payload))
                for point in index.fetch(missing)
            }
            found |= read
            if self._lasting:
                kept = islice(chain(read.items(), known.items()), MAX_CACHED_CHUNKS)
                self._read = (index, dict(kept))
        return found
