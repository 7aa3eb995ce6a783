"""Points, vectors and records in the forms of Qdrant's engine.

The embedded engine and the server's client use the same names for the fields of points and hits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rag_pipeline.core.errors import StoreError
from rag_pipeline.core.ids import PointId
from rag_pipeline.core.protocols.stores import Channel, ChannelQuery, StoredPoint
from rag_pipeline.core.vectors import ChunkVectors, SparseVector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rag_pipeline.core.vectors import FloatMatrix, FloatVector, Point

_MAX_FLOATS: Final = 400_000
"""Largest number of vector components per write.

They make about 8 MB of JSON, a quarter of what a Qdrant server accepts.
"""


def read_id(record: Any) -> PointId:  # noqa: ANN401  # record classes differ by call
    """Return the point id of a record or hit from the engine or the server's client.

    Raises:
        StoreError: The id is not a number, so another program wrote the point.
    """
    if isinstance(record.id, int):
        return PointId(record.id)
    raise StoreError(
        f"point {record.id} in the collection was not written by rag-pipeline, because its id is "
        "not a number. Delete the point, or run `rag-pipeline ingest --rebuild`"
    )


def to_engine_vector(
    vector: FloatVector | FloatMatrix | SparseVector, sparse_class: Callable[..., Any]
) -> Any:  # noqa: ANN401  # a list, a list of lists or the sparse class
    """Return a vector in the form that the embedded engine or the server's client accepts.

    Args:
        vector: Dense vector, matrix of several rows, or sparse vector.
        sparse_class: Class for sparse vectors of the engine or the client.
    """
    if isinstance(vector, SparseVector):
        return sparse_class(indices=list(vector.indices), values=list(vector.values))
    return vector.tolist()


def to_named_vectors(point: Point, sparse_class: Callable[..., Any]) -> dict[str, Any]:
    """Return all vectors of a point by name (dense, windows, BM25), in the form for the engine.

    Args:
        point: The point.
        sparse_class: Class for sparse vectors of the engine or the server's client.
    """
    return {
        Channel.DENSE.value: point.vectors.dense.tolist(),
        Channel.WINDOWS.value: point.vectors.windows.tolist(),
        Channel.BM25.value: to_engine_vector(point.sparse, sparse_class),
    }


def to_stored_point(record: Any, *, with_vectors: bool) -> StoredPoint:  # noqa: ANN401  # record classes differ by call
    """Return a record of the engine or the client as a `StoredPoint`.

    If a point changed by hand lacks its dense or window vectors, `vectors` is None.
    """
    payload = dict(record.payload or {})
    if not with_vectors:
        return StoredPoint(read_id(record), payload)
    vector = record.vector
    named = vector if isinstance(vector, dict) else {}
    dense, windows, terms = (
        named.get(channel.value) for channel in (Channel.DENSE, Channel.WINDOWS, Channel.BM25)
    )
    vectors = None
    if dense is not None and windows is not None:
        vectors = ChunkVectors(
            np.asarray(dense, dtype=np.float32), np.asarray(windows, dtype=np.float32)
        )
    pairs = sorted(zip(terms.indices, terms.values, strict=True)) if terms is not None else ()
    sparse = SparseVector(tuple(index for index, _ in pairs), tuple(value for _, value in pairs))
    return StoredPoint(read_id(record), payload, vectors, sparse)


def split_points(points: Sequence[Point]) -> Iterator[list[Point]]:
    """Yield the points in order, in batches of at most `_MAX_FLOATS` vector components.

    A point with more components gets its own batch.
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


def count_rows(query: ChannelQuery) -> int:
    """Return the number of vectors in a query: one for each token, or one for the whole text."""
    if isinstance(query.vector, SparseVector) or query.vector.ndim == 1:
        return 1
    return len(query.vector)


def can_match(query: ChannelQuery) -> bool:
    """Return False for a query without terms, or whose filter allows no point."""
    no_terms = isinstance(query.vector, SparseVector) and not query.vector.indices
    return not no_terms and query.where.point_ids != ()
