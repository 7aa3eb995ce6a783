"""The stage that embeds the chunks of documents and stores the vectors as artifacts.

The vectors of a document with more than 256 chunks are computed, stored and read back in parts, so
that the memory does not grow with the size of a document.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from rag_pipeline.core.errors import ArtifactMissingError, ArtifactStaleError
from rag_pipeline.core.ids import hash_text
from rag_pipeline.core.models import Stage
from rag_pipeline.ingestion.embedding import embed_chunks
from rag_pipeline.ingestion.serialization import dump_vectors, load_vectors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.models import Chunk
    from rag_pipeline.core.vectors import ChunkVectors
    from rag_pipeline.ingestion.context import IngestionContext
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
    """Embed the chunks of several documents together, and store the vectors as artifacts.

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


def load_embeddings(run: IngestionRun, work: DocInProgress) -> None:
    """Check that an earlier run stored the vectors of a document, and load those of a small one.

    Raises:
        ArtifactMissingError: There is no readable artifact.
        ArtifactStaleError: The artifact was made with another model or from other texts.
    """
    for part, chunks in enumerate(split_chunks(work.chunks)):
        vectors = _load_part(run, work, part, chunks)
        if len(work.chunks) <= PART_CHUNKS:
            work.vectors = vectors


def read_vectors(
    run: IngestionRun, work: DocInProgress
) -> Iterator[tuple[Sequence[Chunk], Sequence[ChunkVectors]]]:
    """Yield the chunks of an embedded document with their vectors, in parts.

    Raises:
        ArtifactMissingError: There is no readable artifact.
        ArtifactStaleError: The artifact was made with another model or from other texts.
    """
    if len(work.chunks) <= PART_CHUNKS:
        yield work.chunks, work.vectors
        return
    for part, chunks in enumerate(split_chunks(work.chunks)):
        yield chunks, _load_part(run, work, part, chunks)


def _embed_segments(
    run: IngestionRun, segments: Sequence[_Segment], figures: dict[DocId, Counter[str]]
) -> None:
    """Embed segments in one call, store their vectors, and add to the figures of each document."""
    if not segments:
        return
    context = run.context
    embedder = context.services.embedder
    fingerprint = embedder.model.fingerprint
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
        chunks, embedder, context.services.cache, lambda: _read_spare(context, segments)
    )
    fresh, windowed = set(embedded.embedded_hashes), set(embedded.windowed_chunk_ids)
    figures[first.doc.doc_id].update(
        requests=embedded.usage.requests, retries=embedded.usage.retries
    )
    vectors = iter(embedded.vectors)
    for work, part, own in segments:
        rows = tuple(next(vectors) for _ in own)
        if len(work.chunks) <= PART_CHUNKS:
            work.vectors = rows
        tokens = {hash_text(chunk.embedding_text): chunk.token_count for chunk in own}
        hashes = [hash_text(chunk.embedding_text) for chunk in own]
        data = dump_vectors(fingerprint, hashes, rows)
        run.artifacts.write(Stage.EMBEDDINGS, work.doc.doc_id, data, part)
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


def _read_spare(context: IngestionContext, segments: Sequence[_Segment]) -> dict[str, ChunkVectors]:
    """Return the vectors of the segments in the current collection's artifacts, by text hash.

    They replace a damaged or deleted cache, also in a rebuild, which begins without artifacts.
    """
    services = context.services
    collection_id = services.catalog.current_id()
    if collection_id is None:
        return {}
    artifacts = services.open_artifacts(collection_id)
    stored: dict[str, ChunkVectors] = {}
    for segment in segments:
        data = artifacts.read(Stage.EMBEDDINGS, segment.work.doc.doc_id, segment.part)
        stored |= load_vectors(data, services.embedder.model.fingerprint) or {}
    return stored


def _load_part(
    run: IngestionRun, work: DocInProgress, part: int, chunks: Sequence[Chunk]
) -> tuple[ChunkVectors, ...]:
    fingerprint = run.context.services.embedder.model.fingerprint
    stored = load_vectors(run.artifacts.read(Stage.EMBEDDINGS, work.doc.doc_id, part), fingerprint)
    if stored is None:
        raise ArtifactMissingError(work.doc.doc_id, Stage.EMBEDDINGS.value)
    hashes = [hash_text(chunk.embedding_text) for chunk in chunks]
    if any(text_hash not in stored for text_hash in hashes):
        raise ArtifactStaleError(work.doc.doc_id, Stage.EMBEDDINGS.value)
    return tuple(stored[text_hash] for text_hash in hashes)
