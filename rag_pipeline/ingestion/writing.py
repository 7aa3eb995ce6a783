"""Writing a document's points, and removing the points of a document that is gone.

The order loses nothing (decision 6): upsert, payload updates, delete of stale points, ledger. A
crash between any two leaves the old or the new points in place, and the next run, which reads what
is really in the store, reaches the state of a clean build. Before all of them the ledger records
that the document is being changed.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from rag_pipeline.core.errors import ArtifactMissingError, RagPipelineError, StoreError
from rag_pipeline.core.ids import to_point_id
from rag_pipeline.core.models import DocFailure, Stage
from rag_pipeline.core.protocols.stores import PointFilter
from rag_pipeline.core.rules import DOCUMENT_RULES, IndexedDocument, find_faults
from rag_pipeline.core.vectors import Point
from rag_pipeline.ingestion.context import now_utc
from rag_pipeline.ingestion.events import DocDeleted
from rag_pipeline.ingestion.indexing import build_payloads, compute_data_version, plan_index
from rag_pipeline.ingestion.stages import mark_begun

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.models import Payload
    from rag_pipeline.core.protocols.stores import PointStore, StoredPoint
    from rag_pipeline.core.rules import Fault
    from rag_pipeline.ingestion.stages import DocInProgress, IngestionRun


def write_points(run: IngestionRun, work: DocInProgress, store: PointStore) -> None:
    """Make the store contain exactly this document's chunks, then record it in the ledger.

    Raises:
        ArtifactMissingError: The document has not been chunked.
        StoreError: The store failed.
    """
    if work.document is None:
        raise ArtifactMissingError(work.doc.doc_id, Stage.CHUNKS.value)
    start = time.perf_counter()
    mark_begun(run, work)
    existing = {
        point.point_id: point.payload
        for point in store.scroll(PointFilter.any_of(doc_path=(work.doc.doc_id,)))
    }
    known_since = {**run.times_by_content, **read_ingestion_times(existing.values())}
    payloads = build_payloads(work.document, work.chunks, known_since, now_utc())
    plan = plan_index(payloads, existing, rewrite=run.request.rewrite)
    written = [
        (to_point_id(chunk.chunk_id), chunk.embedding_text, vectors)
        for chunk, vectors in zip(work.chunks, work.vectors, strict=True)
        if to_point_id(chunk.chunk_id) in plan.upserts
    ]
    terms = run.context.services.sparse.encode_passages([text for _, text, _ in written])
    store.upsert(
        [
            Point(point_id, vectors, point_terms, plan.upserts[point_id])
            for (point_id, _, vectors), point_terms in zip(written, terms, strict=True)
        ]
    )
    store.set_payloads(plan.payload_updates)
    store.delete(plan.deletes)
    version = compute_data_version(payloads)
    run.ledger.record(run.make_entry(work.doc, data_version=version, chunk_count=len(work.chunks)))
    counts: dict[str, int | float | str] = {
        "chunks_created": plan.created,
        "chunks_updated": plan.updated,
        "chunks_unchanged": plan.unchanged,
        "chunks_deleted": len(plan.deletes),
        "duration_s": time.perf_counter() - start,
    }
    work.keep_result(Stage.POINTS, version, counts)


def check_points(run: IngestionRun, group: Sequence[DocInProgress], store: PointStore) -> None:
    """Read back documents that were just written, and add their faults to their results.

    The store is still open from the writing, so nobody else has changed the points.
    """
    if not group:
        return
    limits, dim = run.context.settings.chunk_limits, run.context.space.model.dim
    points: defaultdict[str, list[StoredPoint]] = defaultdict(list)
    unreadable: tuple[Fault, ...] = ()
    try:
        where = PointFilter.any_of(doc_path=[work.doc.doc_id for work in group])
        for point in store.scroll(where, with_vectors=True):
            points[str(point.payload["doc_path"])].append(point)
    except StoreError as error:
        unreadable = (("points_equal_chunks", f"cannot be read back: {error}"),)
    for work in group:
        document = IndexedDocument(work.chunks, points[work.doc.doc_id], limits, dim)
        faults = unreadable or tuple(find_faults(DOCUMENT_RULES, document))
        work.results[Stage.POINTS] = replace(work.results[Stage.POINTS], faults=faults)


def delete_doc(run: IngestionRun, doc_id: DocId, store: PointStore) -> DocDeleted | DocFailure:
    """Remove a document: its points first, its ledger entry last.

    A crash between the two is seen by the next run, which removes the rest.
    """
    try:
        entry = run.scan.entries.get(doc_id)
        if entry is not None:
            run.record_begun(entry)
        points = store.scroll(PointFilter.any_of(doc_path=(doc_id,)))
        store.delete([point.point_id for point in points])
        run.artifacts.remove(doc_id)
        run.ledger.forget(doc_id)
    except (RagPipelineError, OSError) as error:
        return DocFailure(doc_id, Stage.POINTS.value, type(error).__name__, str(error))
    return DocDeleted(doc_id, len(points))


def read_ingestion_times(payloads: Iterable[Payload]) -> dict[str, str]:
    """Return the time of ingestion by content hash."""
    return {
        str(payload.get("content_hash")): str(payload.get("ingested_at")) for payload in payloads
    }


def read_times_of(doc_ids: Sequence[DocId], store: PointStore) -> dict[str, str]:
    """Return the times of ingestion by content hash of documents that are about to be removed."""
    times: dict[str, str] = {}
    for doc_id in doc_ids:
        points = store.scroll(PointFilter.any_of(doc_path=(doc_id,)))
        times |= read_ingestion_times(point.payload for point in points)
    return times
