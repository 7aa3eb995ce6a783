"""Records of Qdrant's engine or client as stored points: both name their parts alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rag_pipeline.core.errors import StoreError
from rag_pipeline.core.ids import PointId
from rag_pipeline.core.protocols.stores import Channel, StoredPoint
from rag_pipeline.core.vectors import ChunkVectors, SparseVector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rag_pipeline.core.vectors import FloatVector


def read_id(record: Any) -> PointId:  # noqa: ANN401  # record classes differ by call
    """The id of a record or hit.

    Raises:
        StoreError: It is no number, so somebody else wrote the point.
    """
    if isinstance(record.id, int):
        return PointId(record.id)
    raise StoreError(
        f"point {record.id} of the collection is not by rag-pipeline, whose ids are numbers. "
        "Delete it there, or run `rag-pipeline ingest --rebuild`"
    )


def read_dense(records: Iterable[Any]) -> dict[PointId, FloatVector]:
    """Dense vectors by id; a point that was altered by hand may lack its own."""
    name = Channel.DENSE.value
    vectors = [(read_id(record), record.vector) for record in records]  # each look makes it anew
    return {
        point_id: np.asarray(named[name], dtype=np.float32)
        for point_id, named in vectors
        if isinstance(named, dict) and name in named
    }


def to_stored_point(record: Any, *, with_vectors: bool) -> StoredPoint:  # noqa: ANN401  # record classes differ by call
    """Translate a record; a point that was altered by hand may lack some of its vectors."""
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
