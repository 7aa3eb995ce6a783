"""What must hold of every indexed document: the rules behind the asset checks, on plain data.

Belongs here: one rule a check. Does not belong here: showing results (orchestration.checks).
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from rag_pipeline.core.errors import StoreError
from rag_pipeline.core.ids import to_point_id
from rag_pipeline.core.protocols.stores import PointFilter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.models import Chunk, ChunkLimits
    from rag_pipeline.core.protocols.stores import StoredPoint, VectorIndex

CHECKS: Final = {
    "chunk_bounds": "No chunk is empty or, but for one atomic block, over the maximum size.",
    "balanced_fences": "Every code fence that a chunk opens it also closes, but for a page's last.",
    "sound_vectors": "Every point has finite unit vectors of the model's dimension.",
    "points_equal_chunks": "The store holds a point for each chunk of the document and no other.",
    "unique_chunk_ids": "No two chunks of the document have one id.",
}
"""Name of each check, and the sentence that it makes sure of."""

Fault: TypeAlias = "tuple[str, str]"
"""Name of a check, and what breaks it."""

_PAGE_DOCS: Final = 50  # documents read back at a time: bounds memory
_FENCE: Final = re.compile(r"^ {0,3}(?:> ?|[-*+] |\d+[.)] )*\s*(`{3,}|~{3,})([^`]*)$")
_UNIT_TOLERANCE: Final = 1e-3


def read_faults(
    written: Mapping[DocId, Sequence[Chunk]], store: VectorIndex, limits: ChunkLimits, dim: int
) -> dict[DocId, tuple[Fault, ...]]:
    """Read back documents just written, and find their faults; nothing for sound ones.

    Args:
        written: The chunks of each document; others of the store are not looked at.
        store: Open since the documents were written, so that nobody has changed them.
        limits: Sizes the chunks were made with.
        dim: Of the collection's vectors.
    """
    faults: dict[DocId, tuple[Fault, ...]] = {}
    doc_ids = list(written)
    for start in range(0, len(doc_ids), _PAGE_DOCS):
        page = doc_ids[start : start + _PAGE_DOCS]
        points: dict[str, list[StoredPoint]] = {doc_id: [] for doc_id in page}
        try:
            for point in store.scroll(PointFilter(doc_paths=tuple(page)), with_vectors=True):
                points[str(point.payload["doc_path"])].append(point)
        except StoreError as error:
            unread: Fault = ("points_equal_chunks", f"cannot be read back: {error}")
            faults |= dict.fromkeys(page, (unread,))
            continue
        for doc_id in page:
            found = tuple(find_faults(written[doc_id], points[doc_id], limits, dim))
            if found:
                faults[doc_id] = found
    return faults


def find_faults(
    chunks: Sequence[Chunk], points: Sequence[StoredPoint], limits: ChunkLimits, dim: int
) -> Iterator[Fault]:
    """Faults of one document.

    Args:
        chunks: All its chunks.
        points: All its points, with vectors, as read back from the store.
        limits: Sizes the chunks were made with.
        dim: Of the collection's vectors.
    """
    ids = Counter(chunk.chunk_id for chunk in chunks)
    for chunk_id, count in ids.items():
        if count > 1:
            yield "unique_chunk_ids", f"chunk {chunk_id} stands {count} times"
    for chunk in chunks:
        if not chunk.text.strip():
            yield "chunk_bounds", f"chunk {chunk.chunk_index} is empty"
        if chunk.token_count > limits.max_tokens and not _holds_atomic_block(chunk.text):
            size = f"{chunk.token_count} tokens of at most {limits.max_tokens}"
            yield "chunk_bounds", f"chunk {chunk.chunk_index} has {size}"
        # a page may leave its last fence open; one that was cut goes on in another chunk
        if chunk is not chunks[-1] and not has_balanced_fences(chunk.text):
            yield "balanced_fences", f"chunk {chunk.chunk_index} opens a fence and leaves it open"
    wanted = {to_point_id(chunk.chunk_id) for chunk in chunks}
    there = {point.point_id for point in points}
    if wanted != there:
        detail = f"{len(wanted - there)} points missing, {len(there - wanted)} stray"
        yield "points_equal_chunks", detail
    for point in points:
        if not _has_sound_vectors(point, dim):
            yield "sound_vectors", f"point {point.payload.get('chunk_id', point.point_id)}"


def has_balanced_fences(text: str) -> bool:
    """Whether every code fence that a text opens is closed in it."""
    fence = ""
    for line in text.splitlines():
        match = _FENCE.match(line)
        if match is None:
            continue
        marks, info = match.groups()
        if not fence:
            fence = marks
        elif marks[0] == fence[0] and len(marks) >= len(fence) and not info.strip():
            fence = ""
    return not fence


def _holds_atomic_block(text: str) -> bool:
    return any(_FENCE.match(line) or "|" in line for line in text.splitlines())


def _has_sound_vectors(point: StoredPoint, dim: int) -> bool:
    if point.vectors is None or point.vectors.dense.shape != (dim,):
        return False
    windows = point.vectors.windows
    if windows.ndim != 2 or windows.shape[0] < 1 or windows.shape[1] != dim:
        return False
    rows = np.vstack([point.vectors.dense[np.newaxis, :], windows])
    norms = np.linalg.norm(rows, axis=1)
    return bool(np.isfinite(rows).all() and (np.abs(norms - 1.0) <= _UNIT_TOLERANCE).all())
