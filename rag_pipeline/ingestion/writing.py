"""Writing a document's points, and removing those of a document that is gone, in the order that
loses nothing.

The order is: upsert, payload updates, delete of stale points, ledger (decision 6). A crash between
any two leaves the old or the new points in place, and the next run, which reads what is really
there, converges. Before any of them the ledger notes that the document is being changed, so that
the next run looks at it even where its file is by then back to what was indexed before, or gone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rag_pipeline.core.errors import RagPipelineError
from rag_pipeline.core.ids import to_point_id
from rag_pipeline.core.models import DocFailure, Stage
from rag_pipeline.core.protocols.state import LedgerEntry
from rag_pipeline.core.protocols.stores import PointFilter
from rag_pipeline.core.vectors import Point
from rag_pipeline.ingestion.indexing import (
    IndexPlan,
    build_payloads,
    compute_data_version,
    plan_index,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.models import Chunk, DiscoveredDoc, Document, Payload
    from rag_pipeline.core.protocols.embedding import SparseEncoder
    from rag_pipeline.core.protocols.state import ArtifactStore, Ledger
    from rag_pipeline.core.protocols.stores import PointStore
    from rag_pipeline.core.vectors import ChunkVectors


@dataclass(frozen=True, slots=True)
class RunStamp:
    """What a run writes beside the points.

    Attributes:
        time: ISO 8601 in UTC.
        rewrite: Write points whole that look unchanged too.
        ingested_at_by_content: Of documents that this run removes: a page that moved keeps its
            times of ingestion.
    """

    run_id: str
    pipeline_fingerprint: str
    time: str
    rewrite: bool
    ingested_at_by_content: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class EmbeddedDocument:
    """A document ready to be written: its file, what is known of it, a vector for each chunk."""

    doc: DiscoveredDoc
    document: Document
    chunks: tuple[Chunk, ...]
    vectors: tuple[ChunkVectors, ...]


def write_document(
    embedded: EmbeddedDocument,
    store: PointStore,
    sparse: SparseEncoder,
    ledger: Ledger,
    stamp: RunStamp,
) -> tuple[IndexPlan, str]:
    """Make the store hold exactly these chunks of a document, then say so in the ledger.

    Args:
        embedded: All there is of the document.
        store: Open for writing.
        sparse: Asked for the terms of points that are written whole.
        ledger: Of the store's collection.
        stamp: Of the run.

    Returns:
        What was done, and the data version of what the store now holds.
    """
    doc, chunks = embedded.doc, embedded.chunks
    existing = {
        point.point_id: point.payload
        for point in store.scroll(PointFilter(doc_paths=(doc.doc_id,)))
    }
    known_since = {**stamp.ingested_at_by_content, **read_ingestion_times(existing.values())}
    payloads = build_payloads(embedded.document, chunks, known_since, stamp.time)
    plan = plan_index(payloads, existing, rewrite=stamp.rewrite)
    vectors_by_id = dict(zip(payloads, embedded.vectors, strict=True))
    texts = {to_point_id(chunk.chunk_id): chunk.embedding_text for chunk in chunks}
    terms = sparse.encode_passages([texts[point_id] for point_id in plan.upserts])
    points = [
        Point(point_id, vectors_by_id[point_id], point_terms, payload)
        for (point_id, payload), point_terms in zip(plan.upserts.items(), terms, strict=True)
    ]
    data_version = compute_data_version(payloads)
    entry = LedgerEntry(
        doc_id=doc.doc_id,
        sha256=doc.sha256,
        size_bytes=doc.size_bytes,
        mtime_ns=doc.mtime_ns,
        pipeline_fingerprint=stamp.pipeline_fingerprint,
        collection_id=store.collection_id,
        data_version=data_version,
        chunk_count=len(chunks),
        run_id=stamp.run_id,
        indexed_at=stamp.time,
    )
    store.upsert(points)
    store.set_payloads(plan.payload_updates)
    store.delete(plan.deletes)
    ledger.record(entry)
    return plan, data_version


def begin_change(entry: LedgerEntry, ledger: Ledger) -> None:
    """Note that what is kept of a document is about to change: its entry matches no file."""
    ledger.record_begun(replace(entry, sha256="", size_bytes=-1, mtime_ns=0))


def read_ingestion_times(payloads: Iterable[Payload]) -> dict[str, str]:
    """Times of ingestion by content hash."""
    return {
        str(payload.get("content_hash")): str(payload.get("ingested_at")) for payload in payloads
    }


def read_times_before(
    doc_ids: Sequence[DocId], open_store: Callable[[], PointStore]
) -> dict[str, str]:
    """Times of ingestion by content hash, of documents that are about to be removed."""
    times: dict[str, str] = {}
    if doc_ids:
        store = open_store()
        try:
            for doc_id in doc_ids:
                points = store.scroll(PointFilter(doc_paths=(doc_id,)))
                times |= read_ingestion_times(point.payload for point in points)
        finally:
            store.close()
    return times


def delete_documents(
    entries: Mapping[DocId, LedgerEntry | None],
    store: PointStore,
    artifacts: ArtifactStore,
    ledger: Ledger,
) -> Iterator[tuple[DocId, int] | DocFailure]:
    """Remove documents: points first, ledger entry last, so that a crash between is seen and
    mended.

    Args:
        entries: The documents, with their ledger entry where there is one.
        store: Open for writing.
        artifacts: What is kept of the documents is removed too.
        ledger: Of the store's collection.

    Yields:
        Each document with the number of points deleted, or its failure.
    """
    for doc_id, entry in entries.items():
        try:
            if entry is not None:
                begin_change(entry, ledger)
            points = store.scroll(PointFilter(doc_paths=(doc_id,)))
            store.delete([point.point_id for point in points])
            artifacts.remove(doc_id)
            ledger.forget(doc_id)
        except (RagPipelineError, OSError) as error:
            yield DocFailure(doc_id, Stage.POINTS.value, type(error).__name__, str(error))
        else:
            yield doc_id, len(points)
