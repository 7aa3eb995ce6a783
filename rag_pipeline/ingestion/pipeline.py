"""The flow of a run: documents through the stages in groups, one document's failure never
another's.

Belongs here: the order of reads and writes. Does not belong here: Dagster (orchestration logs what
this yields), what a stage does (its own module).

Artifacts and the embedding cache are written before the store, which writing.py changes in the
order that loses nothing.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import (
    ArtifactMissingError,
    ArtifactStaleError,
    ConfigurationError,
    RagPipelineError,
)
from rag_pipeline.core.ids import hash_text
from rag_pipeline.core.models import DocFailure, Stage
from rag_pipeline.ingestion.embedding import embed_chunks
from rag_pipeline.ingestion.preparing import prepare_doc
from rag_pipeline.ingestion.serialization import dump_vectors, load_vectors
from rag_pipeline.ingestion.soundness import read_faults
from rag_pipeline.ingestion.work import (
    DocWork,
    StageResult,
    attempt,
    keep_failure,
    make_failure,
    mark_begun,
)
from rag_pipeline.ingestion.writing import EmbeddedDocument, RunStamp, write_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_pipeline.core.models import DiscoveredDoc
    from rag_pipeline.core.protocols.stores import PointStore
    from rag_pipeline.ingestion.embedding import EmbeddedChunks
    from rag_pipeline.ingestion.work import IngestionServices

_GROUP_CHUNKS: Final = 256  # texts embedded together: bounds memory and what a kill costs
_FAILURES_IN_ROW: Final = 3  # documents; then the service counts as down for the rest of a group


def ingest_docs(
    docs: Sequence[DiscoveredDoc], services: IngestionServices, stages: frozenset[Stage]
) -> Iterator[StageResult | DocFailure]:
    """Take documents through the chosen stages.

    A stage that is not chosen is read from its artifact. Documents are handled in groups of about
    256 chunks: parsed and chunked one by one, embedded together, then written one by one with the
    store open no longer than that.

    Args:
        docs: In any order; results come in this order.
        services: The store is opened only where `qdrant_points` is chosen.
        stages: Not empty.

    Yields:
        A result for each document and chosen stage in stage order, or the document's failure.
    """
    group: list[DocWork] = []
    for doc in docs:
        work = DocWork(doc)
        attempt(work, Stage.PARSED, partial(prepare_doc, work, services, stages))
        group.append(work)
        if sum(len(entry.chunks) for entry in group) >= _GROUP_CHUNKS:
            yield from _finish_group(group, services, stages)
            group = []
    if group:
        yield from _finish_group(group, services, stages)


def _finish_group(
    group: Sequence[DocWork], services: IngestionServices, stages: frozenset[Stage]
) -> Iterator[StageResult | DocFailure]:
    if Stage.EMBEDDINGS in stages:
        _embed_group([work for work in group if work.failure is None], services)
    elif Stage.POINTS in stages:
        for work in group:
            attempt(work, Stage.EMBEDDINGS, partial(_load_embeddings, work, services))
    if Stage.POINTS in stages:
        _write_group([work for work in group if work.failure is None], services)
    for work in group:
        for stage in Stage:
            if stage in work.versions:
                yield StageResult(
                    stage,
                    work.doc.doc_id,
                    work.versions[stage],
                    work.counts[stage],
                    work.chunks if stage is Stage.CHUNKS else (),
                    work.faults if stage is Stage.POINTS else (),
                )
        if work.failure is not None:
            keep_failure(work, services)
            yield work.failure


def _embed_group(group: Sequence[DocWork], services: IngestionServices) -> None:
    """Embed the texts of many documents in one call; where that fails, document by document, until
    several in a row have failed.
    """
    try:
        _embed(group, services)
    except ConfigurationError:
        raise
    except Exception as error:  # noqa: BLE001  # as in work.attempt, which looks for the one at fault
        failed_in_row = 0 if len(group) > 1 else _FAILURES_IN_ROW
        for work in group:
            if failed_in_row >= _FAILURES_IN_ROW:
                work.failure = make_failure(work.doc.doc_id, Stage.EMBEDDINGS, error)
                continue
            attempt(work, Stage.EMBEDDINGS, partial(_embed, [work], services))
            failed_in_row = 0 if work.failure is None else failed_in_row + 1


def _embed(group: Sequence[DocWork], services: IngestionServices) -> None:
    chunks = [chunk for work in group for chunk in work.chunks]
    embedded = embed_chunks(chunks, services.embedder, services.cache)
    hashes = [hash_text(chunk.embedding_text) for chunk in chunks]
    fresh = set(embedded.embedded_hashes)
    position = 0
    for place, work in enumerate(group):
        end = position + len(work.chunks)
        work.vectors = embedded.vectors[position:end]
        own_hashes = hashes[position:end]
        data = dump_vectors(services.embedder.model.fingerprint, own_hashes, work.vectors)
        services.artifacts.write(Stage.EMBEDDINGS, work.doc.doc_id, data)
        # A text that stands in several documents counts for the first of them alone.
        new = {text_hash for text_hash in own_hashes if text_hash in fresh}
        fresh -= new
        work.versions[Stage.EMBEDDINGS] = hash_text(
            services.embedder.model.fingerprint + "".join(own_hashes)
        )[:16]
        share = len(new) / len(embedded.embedded_hashes) if new else 0.0
        counts = _count_embedding(work, own_hashes, new, embedded)
        counts["duration_s"] = embedded.usage.seconds * share
        counts["cost_usd"] = int(counts["tokens_embedded"]) * services.price_per_token_usd
        if place == 0:
            counts |= {"requests": embedded.usage.requests, "retries": embedded.usage.retries}
        work.counts[Stage.EMBEDDINGS] = counts
        position = end


def _count_embedding(
    work: DocWork, hashes: Sequence[str], new: set[str], embedded: EmbeddedChunks
) -> dict[str, int | float | str]:
    tokens = {
        text_hash: chunk.token_count for text_hash, chunk in zip(hashes, work.chunks, strict=True)
    }
    tokens_new = sum(tokens[text_hash] for text_hash in new)
    windowed = set(embedded.windowed_chunk_ids)
    return {
        "texts_embedded": len(new),
        "embeddings_reused": len(work.chunks) - len(new),
        "tokens_embedded": tokens_new,
        "tokens_reused": sum(chunk.token_count for chunk in work.chunks) - tokens_new,
        "windowed_chunks": sum(chunk.chunk_id in windowed for chunk in work.chunks),
    }


def _load_embeddings(work: DocWork, services: IngestionServices) -> None:
    data = services.artifacts.read(Stage.EMBEDDINGS, work.doc.doc_id)
    stored = load_vectors(data, services.embedder.model.fingerprint)
    if stored is None:
        raise ArtifactMissingError(work.doc.doc_id, Stage.EMBEDDINGS.value)
    hashes = [hash_text(chunk.embedding_text) for chunk in work.chunks]
    if any(text_hash not in stored for text_hash in hashes):
        raise ArtifactStaleError(work.doc.doc_id, Stage.EMBEDDINGS.value)
    work.vectors = tuple(stored[text_hash] for text_hash in hashes)


def _write_group(group: Sequence[DocWork], services: IngestionServices) -> None:
    if not group:
        return
    try:
        store = services.open_store()
    except RagPipelineError as error:
        for work in group:
            work.failure = make_failure(work.doc.doc_id, Stage.POINTS, error)
        return
    try:
        for work in group:
            attempt(work, Stage.POINTS, partial(_write_points, work, services, store))
        written = {work.doc.doc_id: work.chunks for work in group if work.failure is None}
        dim = services.embedder.model.dim
        faults = read_faults(written, store, services.limits, dim)
        for work in group:
            work.faults = faults.get(work.doc.doc_id, ())
    finally:
        store.close()


def _write_points(work: DocWork, services: IngestionServices, store: PointStore) -> None:
    if work.document is None:
        raise ArtifactMissingError(work.doc.doc_id, Stage.CHUNKS.value)
    start = time.perf_counter()
    mark_begun(work, services)
    stamp = RunStamp(
        services.run_id,
        services.pipeline_fingerprint,
        services.now(),
        services.rewrite,
        services.ingested_at_by_content,
    )
    plan, work.versions[Stage.POINTS] = write_document(
        EmbeddedDocument(work.doc, work.document, work.chunks, work.vectors),
        store,
        services.sparse,
        services.ledger,
        stamp,
    )
    work.counts[Stage.POINTS] = {
        "chunks_created": plan.created,
        "chunks_updated": plan.updated,
        "chunks_unchanged": plan.unchanged,
        "chunks_deleted": len(plan.deletes),
        "duration_s": time.perf_counter() - start,
    }
