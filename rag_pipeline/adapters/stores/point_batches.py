"""Points in batches of bounded size, so that no write grows with the book."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_pipeline.core.vectors import Point

_MAX_FLOATS: Final = 400_000
"""Vector components a batch: about 8 MB of JSON, a quarter of what a Qdrant server accepts."""


def split_points(points: Sequence[Point]) -> Iterator[list[Point]]:
    """Yield points in order, in batches of at most 400,000 vector components; a larger point stands
    alone.
    """
    batch: list[Point] = []
    batch_floats = 0
    for point in points:
        floats = point.vectors.dense.size + point.vectors.windows.size
        if batch and batch_floats + floats > _MAX_FLOATS:
            yield batch
            batch, batch_floats = [], 0
        batch.append(point)
        batch_floats += floats
    if batch:
        yield batch
