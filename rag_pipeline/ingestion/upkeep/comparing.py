"""Comparison of the payload, the vectors and the BM25 terms of a point with those of its chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rag_pipeline.core.models import Payload
    from rag_pipeline.core.vectors import ChunkVectors, FloatMatrix, SparseVector

_COSINE_TOLERANCE = 1e-3  # stores round the numbers and normalize again, so values differ slightly


def find_differing_fields(stored: Payload, expected: Payload) -> str:
    """Return the names of the fields that differ in two payloads, joined by commas."""
    names = sorted(stored.keys() | expected.keys())
    return ", ".join(name for name in names if stored.get(name) != expected.get(name))


def agree(expected: ChunkVectors, stored: ChunkVectors) -> bool:
    """Return True if expected and stored vectors have equal directions, apart from rounding."""
    is_finite = np.isfinite(stored.dense).all() and np.isfinite(stored.windows).all()
    if not is_finite or expected.windows.shape != stored.windows.shape:
        return False
    return all(
        bool(np.allclose(_unit(one), _unit(other), atol=_COSINE_TOLERANCE))
        for one, other in (
            (expected.dense[np.newaxis, :], stored.dense[np.newaxis, :]),
            (expected.windows, stored.windows),
        )
    )


def have_same_terms(expected: SparseVector, stored: SparseVector) -> bool:
    """Return True if two sparse vectors have equal term ids and, apart from rounding, weights."""
    return expected.indices == stored.indices and np.allclose(expected.values, stored.values)


def _unit(rows: FloatMatrix) -> FloatMatrix:
    """Return the rows scaled to unit length; rows of zeros stay as they are."""
    wide = rows.astype(np.float64)  # the squares of damaged float32 values may be too large
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    unit: FloatMatrix = (wide / np.where(norms > 0, norms, 1.0)).astype(np.float32)
    return unit
