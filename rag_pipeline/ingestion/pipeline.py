"""The flow of a run: documents through the stages in groups, one document's failure never
another's.

Belongs here: the order of reads and writes. Does not belong here: Dagster (orchestration logs what
this yields), what a
stage does (its own module).

Artifacts and the embedding cache are written before the store, which writing.py changes in the
order that loses nothing.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import (
    ArtifactMissingError,
    ConfigurationError,
    DocumentReadError,
    RagPipelineError,
)
from rag_pipeline.core.ids import hash_text
from rag_pipeline.core.models import DocFailure, Stage
from rag_pipeline.core.ports import LedgerEntry, LedgerFailure
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.embedding import embed_chunks
from rag_pipeline.ingestion.parsing import parse_doc
from rag_pipeline.ingestion.serialization import (
    dump_chunks,
    dump_record,
    dump_vectors,
    load_chunks,
    load_record,
    load_vectors,
)
from rag_pipeline.ingestion.writing import (
    EmbeddedDocument,
    RunStamp,
    begin_change,
    write_document,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.models import (
        Chunk,
        ChunkLimits,
        ChunkVectors,
        DiscoveredDoc,
        Document,
        ParsedDoc,
        SiteSettings,
    )
    from rag_pipeline.core.ports import (
        ArtifactStore,
        Embedder,
        EmbeddingCache,
        Ledger,
        PointStore,
        SparseEncoder,
    )
    from rag_pipeline.ingestion.embedding import EmbeddedChunks

_GROUP_CHUNKS: Final = 256  # texts embedded together: bounds memory and what a kill costs
_FAILURES_IN_ROW: Final = 3  # documents; then the service counts as down for the rest of a group


@dataclass(frozen=True, slots=True)
class IngestionServices:
    """Everything outside that a run needs.

    Attributes:
        open_store: Gives the collection the run writes to.
        entries: The ledger's, as they were before the run.
        failures: The same.
        ingested_at_by_content: Of documents that the run removes afterwards.
    """

    site: SiteSettings
    limits: ChunkLimits
    embedder: Embedder
    sparse: SparseEncoder
    cache: EmbeddingCache
    artifacts: ArtifactStore
    ledger: Ledger
    open_store: Callable[[], PointStore]
    collection_id: str
    pipeline_fingerprint: str
    price_per_token_usd: float
    run_id: str
    rewrite: bool
    now: Callable[[], str]
    entries: Mapping[DocId, LedgerEntry]
    failures: Mapping[DocId, LedgerFailure]
    ingested_at_by_content: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StageResult:
    """A stage finished for a document.

    Attributes:
        data_version: Changes whenever the output does.
        counts: What the stage counted; keys are metadata names with their unit.
        chunks: The document's chunks where the stage made or wrote them, for a preview.
    """

    stage: Stage
    doc_id: DocId
    data_version: str
    counts: Mapping[str, int | float | str]
    chunks: tuple[Chunk, ...] = ()


@dataclass(slots=True)
class _Work:
    """A document on its way; fields fill up stage by stage."""

    doc: DiscoveredDoc
    document: Document | None = None
    chunks: tuple[Chunk, ...] = ()
    vectors: tuple[ChunkVectors, ...] = ()
    failure: DocFailure | None = None
    begun: bool = False
    counts: dict[Stage, dict[str, int | float | str]] = field(default_factory=dict)
    versions: dict[Stage, str] = field(default_factory=dict)


def ingest_docs(
    docs: Sequence[DiscoveredDoc], services: IngestionServices, stages: frozenset[Stage]
) -> Iterator[StageResult | DocFailure]:
    """Take documents through the chosen stages.

    A stage that is not chosen is read from its artifact. Documents are handled in groups of about
    256 chunks: parsed and
    chunked one by one, embedded together, then written one by one with the store open no longer
    than that.

    Args:
        docs: In any order; results come in this order.
        services: The store is opened only where `qdrant_points` is chosen.
        stages: Not empty.

    Yields:
        A result for each document and chosen stage in stage order, or the document's failure.
    """
    group: list[_Work] = []
    for doc in docs:
        work = _Work(doc)
        _attempt(work, Stage.PARSED, partial(_prepare, work, services, stages))
        group.append(work)
        if sum(len(entry.chunks) for entry in group) >= _GROUP_CHUNKS:
            yield from _finish_group(group, services, stages)
            group = []
    if group:
        yield from _finish_group(group, services, stages)


def _prepare(work: _Work, services: IngestionServices, stages: frozenset[Stage]) -> None:
    """Discover, parse and chunk one document, or read what an earlier run made of it."""
    doc = work.doc
    if Stage.DISCOVERED in stages:
        record = {"doc_id": doc.doc_id, "sha256": doc.sha256, "size_bytes": doc.size_bytes}
        services.artifacts.write(Stage.DISCOVERED, doc.doc_id, dump_record(record))
        work.versions[Stage.DISCOVERED] = doc.sha256[:16]
        work.counts[Stage.DISCOVERED] = {"size_bytes": doc.size_bytes}
    parsed = _parse(work, services) if Stage.PARSED in stages else None
    if Stage.CHUNKS in stages:
        _chunk(work, services, parsed or _load_parsed(work, services))
    elif stages & {Stage.EMBEDDINGS, Stage.POINTS}:
        stored = load_chunks(services.artifacts.read(Stage.CHUNKS, doc.doc_id))
        if stored is None:
            raise ArtifactMissingError(doc.doc_id, Stage.CHUNKS.value)
        sha256, work.document, work.chunks = stored
        work.doc = replace(doc, sha256=sha256)


def _parse(work: _Work, services: IngestionServices) -> ParsedDoc:
    start = time.perf_counter()
    try:
        data = work.doc.path.read_bytes()
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}. Check the file and its permissions"
        raise DocumentReadError(work.doc.doc_id, problem) from error
    # The file may have changed since it was discovered: what is indexed is what was read here.
    work.doc = replace(work.doc, sha256=hashlib.sha256(data).hexdigest())
    parsed = parse_doc(work.doc, services.site, data)
    record = {"doc_id": work.doc.doc_id, "sha256": work.doc.sha256, "source": parsed.source}
    services.artifacts.write(Stage.PARSED, work.doc.doc_id, dump_record(record))
    document = parsed.document
    work.versions[Stage.PARSED] = hash_text(repr((document, parsed.source)))[:16]
    work.counts[Stage.PARSED] = {
        "title": document.title,
        "url": document.url,
        "heading_count": len(document.headings),
        "block_count": len(parsed.blocks),
        "duration_s": time.perf_counter() - start,
    }
    return parsed


def _begin_change(work: _Work, services: IngestionServices) -> None:
    """Note, once a run, that a document's artifacts and points will be others than its entry's."""
    doc, entry = work.doc, services.entries.get(work.doc.doc_id)
    if work.begun or (
        entry is not None
        and (entry.sha256, entry.pipeline_fingerprint)
        == (doc.sha256, services.pipeline_fingerprint)
    ):
        return
    if entry is None:
        entry = LedgerEntry(
            doc_id=doc.doc_id,
            sha256="",
            size_bytes=-1,
            mtime_ns=0,
            pipeline_fingerprint=services.pipeline_fingerprint,
            collection_id=services.collection_id,
            data_version="",
            chunk_count=0,
            run_id=services.run_id,
            indexed_at="",
        )
    begin_change(entry, services.ledger)
    work.begun = True


def _load_parsed(work: _Work, services: IngestionServices) -> ParsedDoc:
    record = load_record(services.artifacts.read(Stage.PARSED, work.doc.doc_id))
    if record is None:
        raise ArtifactMissingError(work.doc.doc_id, Stage.PARSED.value)
    work.doc = replace(work.doc, sha256=record["sha256"])
    return parse_doc(work.doc, services.site, record["source"].encode("utf-8", "surrogatepass"))


def _chunk(work: _Work, services: IngestionServices, parsed: ParsedDoc) -> None:
    start = time.perf_counter()
    chunks = chunk_doc(parsed, services.limits)
    work.document, work.chunks = parsed.document, chunks
    _begin_change(work, services)
    data = dump_chunks(work.doc.sha256, parsed.document, chunks)
    services.artifacts.write(Stage.CHUNKS, work.doc.doc_id, data)
    tokens = [chunk.token_count for chunk in chunks]
    work.versions[Stage.CHUNKS] = hashlib.sha256(data).hexdigest()[:16]
    work.counts[Stage.CHUNKS] = {
        "chunk_count": len(chunks),
        "token_total": sum(tokens),
        "token_max": max(tokens, default=0),
        "word_total": sum(chunk.word_count for chunk in chunks),
        "duration_s": time.perf_counter() - start,
    }


def _finish_group(
    group: Sequence[_Work], services: IngestionServices, stages: frozenset[Stage]
) -> Iterator[StageResult | DocFailure]:
    if Stage.EMBEDDINGS in stages:
        _embed_group([work for work in group if work.failure is None], services)
    elif Stage.POINTS in stages:
        for work in group:
            _attempt(work, Stage.EMBEDDINGS, partial(_load_embeddings, work, services))
    if Stage.POINTS in stages:
        _write_group([work for work in group if work.failure is None], services)
    for work in group:
        for stage in Stage:
            if stage in work.versions:
                shown = work.chunks if stage in {Stage.CHUNKS, Stage.POINTS} else ()
                counts = work.counts[stage]
                yield StageResult(stage, work.doc.doc_id, work.versions[stage], counts, shown)
        if work.failure is not None:
            _record_failure(work, services)
            yield work.failure


def _embed_group(group: Sequence[_Work], services: IngestionServices) -> None:
    """Embed the texts of many documents in one call; where that fails, document by document, until
    several in a row have failed.
    """
    try:
        _embed(group, services)
    except ConfigurationError:
        raise
    except (RagPipelineError, OSError) as error:
        failed_in_row = 0 if len(group) > 1 else _FAILURES_IN_ROW
        for work in group:
            if failed_in_row >= _FAILURES_IN_ROW:
                work.failure = _failure(work.doc.doc_id, Stage.EMBEDDINGS, error)
                continue
            _attempt(work, Stage.EMBEDDINGS, partial(_embed, [work], services))
            failed_in_row = 0 if work.failure is None else failed_in_row + 1


def _embed(group: Sequence[_Work], services: IngestionServices) -> None:
    chunks = [chunk for work in group for chunk in work.chunks]
    embedded = embed_chunks(chunks, services.embedder, services.cache)
    hashes = [hash_text(chunk.embedding_text) for chunk in chunks]
    fresh = set(embedded.embedded_hashes)
    position = 0
    for place, work in enumerate(group):
        end = position + len(work.chunks)
        work.vectors = embedded.vectors[position:end]
        own_hashes = hashes[position:end]
        data = dump_vectors(own_hashes, work.vectors)
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
    work: _Work, hashes: Sequence[str], new: set[str], embedded: EmbeddedChunks
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


def _load_embeddings(work: _Work, services: IngestionServices) -> None:
    stored = load_vectors(services.artifacts.read(Stage.EMBEDDINGS, work.doc.doc_id))
    hashes = [hash_text(chunk.embedding_text) for chunk in work.chunks]
    if stored is None or any(text_hash not in stored for text_hash in hashes):
        raise ArtifactMissingError(work.doc.doc_id, Stage.EMBEDDINGS.value)
    work.vectors = tuple(stored[text_hash] for text_hash in hashes)


def _write_group(group: Sequence[_Work], services: IngestionServices) -> None:
    if not group:
        return
    try:
        store = services.open_store()
    except RagPipelineError as error:
        for work in group:
            work.failure = _failure(work.doc.doc_id, Stage.POINTS, error)
        return
    try:
        for work in group:
            _attempt(work, Stage.POINTS, partial(_write_points, work, services, store))
    finally:
        store.close()


def _write_points(work: _Work, services: IngestionServices, store: PointStore) -> None:
    if work.document is None:
        raise ArtifactMissingError(work.doc.doc_id, Stage.CHUNKS.value)
    start = time.perf_counter()
    _begin_change(work, services)
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


def _attempt(work: _Work, stage: Stage, action: Callable[[], object]) -> None:
    """Run a step of a document that has not failed yet; keep its failure instead of raising.

    A wrong setting is no fault of the document and ends the run.
    """
    if work.failure is None:
        try:
            action()
        except ConfigurationError:
            raise
        except (RagPipelineError, OSError) as error:
            work.failure = _failure(work.doc.doc_id, stage, error)


def _failure(doc_id: DocId, stage: Stage, error: Exception) -> DocFailure:
    return DocFailure(doc_id, stage.value, type(error).__name__, str(error))


def _record_failure(work: _Work, services: IngestionServices) -> None:
    """Count the failure in the ledger; a ledger that cannot be written must not hide it."""
    failure = work.failure
    if failure is None:
        return
    try:
        before = services.failures.get(work.doc.doc_id)
        same = before is not None and before.sha256 == work.doc.sha256
        services.ledger.record_failure(
            LedgerFailure(
                doc_id=work.doc.doc_id,
                sha256=work.doc.sha256,
                stage=failure.stage,
                error=failure.error,
                message=failure.message,
                attempts=(before.attempts + 1) if before is not None and same else 1,
                failed_at=services.now(),
            )
        )
    except (RagPipelineError, OSError) as error:
        message = f"{failure.message} (and the ledger could not be written: {error})"
        work.failure = replace(failure, message=message)
