"""A record of Qdrant's engine or client as a stored point: both name its parts alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from rag_pipeline.core.ids import PointId
from rag_pipeline.core.models import ChunkVectors, SparseVector
from rag_pipeline.core.ports import Channel, StoredPoint


def to_stored_point(record: Any, *, with_vectors: bool) -> StoredPoint:  # noqa: ANN401  # record classes differ by call
    """Translate a record; a point that was altered by hand may lack some of its vectors."""
    payload = dict(record.payload or {})
    if not with_vectors:
        return StoredPoint(PointId(record.id), payload)
    named = record.vector if isinstance(record.vector, dict) else {}
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
    return StoredPoint(PointId(record.id), payload, vectors, sparse)
