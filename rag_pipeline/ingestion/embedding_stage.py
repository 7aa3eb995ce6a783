"""The stage that embeds the chunks of documents. Its output is in the embedding cache.

The vectors of a document with more than 256 chunks are computed, stored and read back in parts, so
that the memory does not grow with the size of a document. If the cache was lost, the vectors of
indexed chunks come from the store.
"""

from __future__ import annotations

import logging
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from rag_pipeline.core.errors import StoreError
from rag_pipeline.core.ids import hash_text
from rag_pipeline.core.models import Stage
from rag_pipeline.core.protocols.stores import PointFilter
from rag_pipeline.ingestion.embedding import embed_chunks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.models import Chunk
    from rag_pipeline.core.protocols.stores import StoredPoint
    from rag_pipeline.core.vectors import ChunkVectors
    from rag_pipeline.ingestion.stages import DocInProgress, IngestionRun

PART_CHUNKS: Final = 256
"""Largest number of chunks whose vectors are in memory at a time."""

_LOG: Final = logging.getLogger(__name__)


class _Segment(NamedTuple):
    """Chunks that are embedded together: a whole document, or a part of a large one."""

    work: DocInProgress
    part: int
    chunks: Sequence[Chunk]


def split_chunks(chunks: Sequence[Chunk]) -> list[Sequence[Chunk]]:
    """Split the chunks of a document into parts of 256; no chunks give one empty part."""
    starts = range(0, max(len(chunks), 1), PART_CHUNKS)
    return [chunks[start : start + PART_CHUNKS] for start in starts]


def embed_docs(run: IngestionRun, group: Sequence[DocInProgress]) -> None:
    """Embed the chunks of several documents together; the cache then has all their vectors.

    Raises:
        EmbeddingError: The service failed, or its vectors cannot be used.
    """
    figures = {work.doc.doc_id: Counter[str]() for work in group}
    pending: list[_Segment] = []
    for work in group:
        for part, chunks in enumerate(split_chunks(work.chunks)):
            if sum(len(each.chunks) for each in pending) + len(chunks) > PART_CHUNKS:
                _embed_segments(run, pending, figures)
                pending = []
            pending.append(_Segment(work, part, chunks))
    if pending:
        _embed_segments(run, pending, figures)
    fingerprint = run.context.services.embedder.model.fingerprint
    for work in group:
        hashes = "".join(hash_text(chunk.embedding_text) for chunk in work.chunks)
        version = hash_text(fingerprint + hashes)[:16]
        work.keep_result(Stage.EMBEDDINGS, version, dict(figures[work.doc.doc_id]))


def read_vectors(
    run: IngestionRun, work: DocInProgress
) -> Iterator[tuple[Sequence[Chunk], Sequence[ChunkVectors]]]:
    """Yield the chunks of an embedded document with their vectors, in parts.

    Raises:
        StoreError: The database has lost a vector meanwhile.
    """
    if len(work.chunks) <= PART_CHUNKS:
        yield work.chunks, work.vectors
        return
    for chunks in split_chunks(work.chunks):
        yield chunks, _load_vectors(run, work, chunks)


def _embed_segments(
    run: IngestionRun, segments: Sequence[_Segment], figures: dict[DocId, Counter[str]]
) -> None:
    """Embed segments in one call, and add to the figures of each document."""
    if not segments:
        return
    context = run.context
    embedder = context.services.embedder
    chunks = [chunk for segment in segments for chunk in segment.chunks]
    first = segments[0].work
    place = f"from chunk {segments[0].part * PART_CHUNKS + 1} of {len(first.chunks)}"
    _LOG.info(
        "embedding %d chunks of %s with the %s model %s",
        len(chunks),
        f"{first.doc.doc_id} {place}" if len(segments) == 1 else f"{len(segments)} documents",
        embedder.model.provider,
        embedder.model.model,
    )
    embedded = embed_chunks(
        chunks,
        embedder,
        context.services.cache,
        lambda lacking: _read_stored(run, [each.work.doc.doc_id for each in segments], lacking),
    )
    fresh, windowed = set(embedded.embedded_hashes), set(embedded.windowed_chunk_ids)
    figures[first.doc.doc_id].update(
        requests=embedded.usage.requests, retries=embedded.usage.retries
    )
    vectors = iter(embedded.vectors)
    for work, _, own in segments:
        rows = tuple(next(vectors) for _ in own)
        if len(work.chunks) <= PART_CHUNKS:
            work.vectors = rows
        tokens = {hash_text(chunk.embedding_text): chunk.token_count for chunk in own}
        # A text that several documents contain counts only for the first of them.
        new = tokens.keys() & fresh
        fresh -= new
        tokens_new = sum(tokens[text_hash] for text_hash in new)
        share = len(new) / len(embedded.embedded_hashes) if new else 0.0
        counts: dict[str, float] = {
            "texts_embedded": len(new),
            "embeddings_reused": len(own) - len(new),
            "tokens_embedded": tokens_new,
            "tokens_reused": sum(chunk.token_count for chunk in own) - tokens_new,
            "windowed_chunks": sum(chunk.chunk_id in windowed for chunk in own),
            "duration_s": embedded.usage.seconds * share,
            "cost_usd": tokens_new * context.price_per_token_usd,
        }
        figures[work.doc.doc_id].update(counts)


def _read_stored(
    run: IngestionRun, doc_ids: Sequence[DocId], text_hashes: frozenset[str]
) -> dict[str, ChunkVectors]:
    """Return the vectors that points of the given documents in the current collection have.

    They replace those of a database that was damaged or deleted, together with the ledger.

    Args:
        run: The run.
        doc_ids: Ids of the documents.
        text_hashes: Hashes of the texts whose vectors are wanted.
    """
    services = run.context.services
    collection_id = services.catalog.current_id()
    if collection_id is None:
        return {}
    found: dict[str, ChunkVectors] = {}
    try:
        with closing(services.catalog.open(collection_id)) as store:
            if store.space.model != services.embedder.model:
                return {}
            points = store.scroll(PointFilter.any_of(doc_path=tuple(doc_ids)))
            ids = [point.point_id for point in points if _read_hash(point) in text_hashes]
            for start in range(0, len(ids), PART_CHUNKS):
                for point in store.fetch(ids[start : start + PART_CHUNKS], with_vectors=True):
                    if point.vectors is not None and _are_units(point.vectors):
                        found[_read_hash(point)] = point.vectors
    except StoreError as error:
        _LOG.info("no vectors were read from the store: %s", error)
    return found


def _read_hash(point: StoredPoint) -> str:
    return str(point.payload.get("embedding_hash"))


def _are_units(vectors: ChunkVectors) -> bool:
    """Return True if all rows have unit length, which rows of a damaged store may not have."""
    rows = np.vstack([vectors.dense[np.newaxis, :], vectors.windows])
    with np.errstate(all="ignore"):
        return bool(np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-3))


def _load_vectors(
    run: IngestionRun, work: DocInProgress, chunks: Sequence[Chunk]
) -> tuple[ChunkVectors, ...]:
    services = run.context.services
    hashes = [hash_text(chunk.embedding_text) for chunk in chunks]
    kept = services.cache.get_many(services.embedder.model.fingerprint, sorted(set(hashes)))
    if any(text_hash not in kept for text_hash in hashes):
        raise StoreError(
            f"the database has lost vectors of {work.doc.doc_id} meanwhile. Run `rag-pipeline "
            "ingest` again"
        )
    return tuple(kept[text_hash] for text_hash in hashes)
