"""Write the points of a document to the store, or delete the points of a document that is gone.

The order of writes is safe against crashes (ADR 6): first write the ledger entry without its file
hash, which marks the document as incomplete; then upsert points, update payloads, delete stale
points, and write the complete ledger entry. After a crash between two writes the store has the old
points, the new points or both, and the next run repairs the document.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import RagPipelineError, StoreError
from rag_pipeline.core.ids import DocId, PointId, to_point_id
from rag_pipeline.core.models import Chunk, DocFailure, Document, Payload, Stage
from rag_pipeline.core.payload import build_payload
from rag_pipeline.core.protocols import PointFilter, PointStore, StoredPoint
from rag_pipeline.core.rules import Finding, check_documents
from rag_pipeline.core.vectors import Point
from rag_pipeline.ingestion.context import now_utc
from rag_pipeline.ingestion.events import DocDeleted
from rag_pipeline.ingestion.stages import (
    PART_CHUNKS,
    DocInProgress,
    IngestionRun,
    describe_failure,
    read_vectors,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """The writes that bring a document's points up to date, in the order of execution (ADR 6).

    Attributes:
        upserts: Payload by id of each point that is new or whose vectors change.
        payload_updates: Payload by id of each point whose payload changes and whose vectors stay.
        deletes: Ids of points that no chunk of the document has any more, ascending.
        created: Number of points in `upserts` that are not in the store yet.
        unchanged: Number of points that are not written.
    """

    upserts: dict[PointId, Payload]
    payload_updates: dict[PointId, Payload]
    deletes: tuple[PointId, ...]
    created: int
    unchanged: int

    @property
    def updated(self) -> int:
        """Number of existing points that are written again, completely or only their payload."""
        return len(self.upserts) - self.created + len(self.payload_updates)


def write_points(run: IngestionRun, work: DocInProgress, store: PointStore) -> None:
    """Make the store contain exactly the points of this document's chunks.

    Call `record_points` after the changes are on the disk.

    Raises:
        StoreError: The store failed.
    """
    assert work.document is not None  # noqa: S101  # the stage before has parsed it
    start = time.perf_counter()
    existing = {
        point.point_id: point.payload
        for point in store.scroll(PointFilter.any_of(doc_path=(work.doc.doc_id,)))
    }
    known_since = {**run.times_by_content, **read_ingestion_times(existing.values())}
    payloads = build_payloads(work.document, work.chunks, known_since, now_utc())
    entry = run.scan.entries.get(work.doc.doc_id)
    # After a kill, points of a provisional entry may have new vectors with their old payloads.
    is_provisional = entry is not None and not entry.sha256
    plan = plan_index(payloads, existing, rewrite=run.request.rewrite or is_provisional)
    _LOG.info("writing %d points of %s", len(plan.upserts), work.doc.doc_id)
    for chunks, vectors in read_vectors(run, work) if plan.upserts else ():
        written = [
            (chunk, own)
            for chunk, own in zip(chunks, vectors, strict=True)
            if to_point_id(chunk.chunk_id) in plan.upserts
        ]
        texts = [chunk.embedding_text for chunk, _ in written]
        points = []
        terms = run.context.services.sparse.encode_passages(texts)
        for (chunk, own), own_terms in zip(written, terms, strict=True):
            point_id = to_point_id(chunk.chunk_id)
            points.append(Point(point_id, own, own_terms, plan.upserts[point_id]))
        store.upsert(points)
    store.set_payloads(plan.payload_updates)
    store.delete(plan.deletes)
    counts: dict[str, int | float | str] = {
        "chunks_created": plan.created,
        "chunks_updated": plan.updated,
        "chunks_unchanged": plan.unchanged,
        "chunks_deleted": len(plan.deletes),
        "duration_s": time.perf_counter() - start,
    }
    work.keep_result(Stage.POINTS, compute_data_version(payloads), counts)


def record_points(run: IngestionRun, work: DocInProgress, waited_s: float = 0.0) -> None:
    """Write the ledger entry of a document whose points are on the disk.

    Args:
        run: The ingestion.
        work: The document, after `write_points`.
        waited_s: Seconds of writing to the disk after `write_points`, added to the duration.

    Raises:
        LedgerConflictError: Another run has changed the entry since this run has read it.
    """
    done = work.results[Stage.POINTS]
    before = work.begun or run.scan.entries.get(work.doc.doc_id)
    version = before.version if before is not None else 0
    entry = run.make_entry(
        work.doc, data_version=done.data_version, chunk_count=len(work.chunks), version=version
    )
    run.ledger.record(entry)
    duration_s = float(done.counts["duration_s"]) + waited_s
    work.results[Stage.POINTS] = replace(done, counts={**done.counts, "duration_s": duration_s})


def check_points(run: IngestionRun, group: Sequence[DocInProgress], store: PointStore) -> None:
    """Read the written points of documents back, and add each broken rule to the stage result.

    Call this before the store is closed after writing, so that no other process can have changed
    the points. If reading fails, each document gets a broken rule that says so.
    """
    if not group:
        return
    limits, dim = run.context.settings.chunk_limits, run.context.space.model.dim
    chunks = {work.doc.doc_id: work.chunks for work in group}
    try:
        found = check_documents(chunks, _read_back(group, store), limits, dim)
    except StoreError as error:
        detail = f"the points cannot be read back: {error}"
        found = {doc_id: (Finding("points_equal_chunks", doc_id, "", detail),) for doc_id in chunks}
    for work in group:
        faults = found[work.doc.doc_id]
        work.results[Stage.POINTS] = replace(work.results[Stage.POINTS], faults=faults)


def _read_back(group: Sequence[DocInProgress], store: PointStore) -> Iterator[StoredPoint]:
    """Yield all points of documents with their vectors, those of large documents in parts."""
    small = [work for work in group if len(work.chunks) <= PART_CHUNKS]
    if small:
        where = PointFilter.any_of(doc_path=[work.doc.doc_id for work in small])
        yield from store.scroll(where, with_vectors=True)
    for work in group:
        if len(work.chunks) > PART_CHUNKS:
            where = PointFilter.any_of(doc_path=(work.doc.doc_id,))
            ids = [point.point_id for point in store.scroll(where)]
            for start in range(0, len(ids), PART_CHUNKS):
                yield from store.fetch(ids[start : start + PART_CHUNKS], with_vectors=True)


def delete_docs(run: IngestionRun, doc_ids: Iterable[DocId]) -> Iterator[DocDeleted | DocFailure]:
    """Delete the points of documents, then their ledger entries, and yield an event for each.

    The deletions reach the disk together, which saves most of the time. After a crash the ledger
    entries still exist, so the next run deletes the rest.

    Yields:
        The event of the deletion, or a failure if the store or the ledger cannot be changed.
    """
    left = dict.fromkeys(doc_ids, (0, 0))  # version of the ledger entry, and number of points
    try:
        with run.hold_store() as store, store.write_together():
            for doc_id in [*left]:
                try:
                    entry = run.scan.entries.get(doc_id)
                    version = 0 if entry is None else run.record_begun(entry).version
                    points = store.scroll(PointFilter.any_of(doc_path=(doc_id,)))
                    store.delete([point.point_id for point in points])
                    left[doc_id] = version, len(points)
                except (RagPipelineError, OSError) as error:
                    del left[doc_id]
                    yield describe_failure(doc_id, Stage.POINTS, error)
    except RagPipelineError as error:  # the points may still be on the disk
        yield from (describe_failure(doc_id, Stage.POINTS, error) for doc_id in left)
        return
    for doc_id, (version, point_count) in left.items():
        try:
            run.ledger.forget(doc_id, version)
        except (RagPipelineError, OSError) as error:
            yield describe_failure(doc_id, Stage.POINTS, error)
        else:
            yield DocDeleted(doc_id, point_count)


def read_ingestion_times(payloads: Iterable[Payload]) -> dict[str, str]:
    """Map the content hash in each payload to the time at which the content was first ingested."""
    return {
        str(payload.get("content_hash")): str(payload.get("ingested_at")) for payload in payloads
    }


def plan_index(
    wanted: Mapping[PointId, Payload], existing: Mapping[PointId, Payload], *, rewrite: bool = False
) -> IndexPlan:
    """Compare the points that a document should have with the points in the store.

    A point that differs only in `ingested_at` counts as unchanged.

    Args:
        wanted: Payload by point id for each chunk of the document.
        existing: Payload by point id for each point of the document in the store.
        rewrite: Write all points completely, because their vectors in the store may be wrong.
    """
    upserts: dict[PointId, Payload] = {}
    payload_updates: dict[PointId, Payload] = {}
    created = 0
    for point_id, payload in wanted.items():
        stored = existing.get(point_id)
        if stored is None:
            created += 1
            upserts[point_id] = payload
        elif rewrite or stored.get("embedding_hash") != payload["embedding_hash"]:
            upserts[point_id] = payload
        elif _contents(stored) != _contents(payload):
            payload_updates[point_id] = payload
    deletes = tuple(sorted(point_id for point_id in existing if point_id not in wanted))
    unchanged = len(wanted) - len(upserts) - len(payload_updates)
    return IndexPlan(upserts, payload_updates, deletes, created, unchanged)


def build_payloads(
    document: Document, chunks: Sequence[Chunk], ingested_at_by_content: Mapping[str, str], now: str
) -> dict[PointId, Payload]:
    """Return the payload of each chunk of a document by point id, in chunk order.

    Args:
        document: The document that the chunks belong to.
        chunks: All chunks of the document.
        ingested_at_by_content: Time of first ingestion by content hash. A chunk whose content was
            indexed before keeps its time.
        now: Time of ingestion of new content, as ISO 8601 in UTC.
    """
    return {
        to_point_id(chunk.chunk_id): build_payload(
            chunk, document, ingested_at_by_content.get(chunk.content_hash, now)
        )
        for chunk in chunks
    }


def compute_data_version(payloads: Mapping[PointId, Payload]) -> str:
    """Return a hash of a document's payloads, without the times of ingestion, as 16 hex digits."""
    contents = [[point_id, _contents(payload)] for point_id, payload in sorted(payloads.items())]
    text = json.dumps(contents, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _contents(payload: Payload) -> Payload:
    """Return a payload without its time of ingestion."""
    return {key: value for key, value in payload.items() if key != "ingested_at"}
