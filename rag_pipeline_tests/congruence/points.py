"""A small set of seeded points, with ids, texts and values that stores may handle badly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rag_pipeline.core.ids import PointId
from rag_pipeline.core.vectors import (
    STORED_DTYPE,
    ChunkVectors,
    EmbeddingModel,
    EmbeddingSpace,
    Point,
    SparseVector,
)

if TYPE_CHECKING:
    from rag_pipeline.core.protocols import CollectionCatalog
    from rag_pipeline.core.vectors import FloatMatrix

DIM = 8
SPACE = EmbeddingSpace(EmbeddingModel("test", "seeded", DIM, 100, 16), 1)

HIGHEST_ID = PointId(2**64 - 1)
ABOVE_SIGNED = PointId(2**63 + 1)


def make_rows(seed: int, count: int) -> FloatMatrix:
    """Build `count` rows of unit length, always the same rows for the same seed."""
    rows = np.random.default_rng(seed).normal(size=(count, DIM))
    unit: FloatMatrix = (
        (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(STORED_DTYPE).astype(np.float32)
    )
    return unit


def make_point(point_id: int, seed: int | None = None, **payload: str | list[str]) -> Point:
    """Build a point whose vectors and terms depend on the seed, by default on the point's id."""
    seed = point_id % 10_007 if seed is None else seed
    rows = make_rows(seed, 2 + seed % 3)
    terms = sorted({seed % 7, 10 + seed % 5, 20 + seed % 3})
    sparse = SparseVector(tuple(terms), tuple(0.5 + term / 40 for term in terms))
    fields = {"chunk_id": f"{point_id:016x}", "module": "module-1", "tags": ["ros"], **payload}
    return Point(PointId(point_id), ChunkVectors(rows[0], rows), sparse, dict(fields))


def make_points(count: int = 40) -> list[Point]:
    """Build points with several values of each filter field; two ids are above 2**63."""
    points = [
        make_point(
            number + 1,
            module=f"module-{number % 3}",
            chapter=f"chapter-{number % 4}",
            content_type=("prose", "code", "lab")[number % 3],
            tags=[f"tag-{number % 2}", f"tag-{2 + number % 5}"],
            doc_path=f"module-{number % 3}/page-{number % 6}.md",
        )
        for number in range(count - 2)
    ]
    last = {"module": "module-9", "chapter": "chapter-9", "content_type": "quiz"}
    return [
        *points,
        make_point(ABOVE_SIGNED, **last, doc_path="a b/ü.md"),
        make_point(HIGHEST_ID, **last, doc_path="a b/ü.md"),
    ]


def build(catalog: CollectionCatalog, point_id: int) -> str:
    """Create a build with one point, make it the current one, and return its id."""
    store = catalog.create(SPACE)
    store.upsert([make_point(point_id)])
    store.close()
    catalog.switch_to(store.collection_id)
    return store.collection_id


def read_ids(catalog: CollectionCatalog) -> list[int]:
    """Return the ids of the points of the current build."""
    store = catalog.open_current(SPACE)
    try:
        return [point.point_id for point in store.scroll()]
    finally:
        store.close()
