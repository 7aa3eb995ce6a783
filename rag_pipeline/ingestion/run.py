"""Run one ingestion from start to end, write the points, and yield the events.

The flow is in `run_ingestion`. Documents are processed in groups. The stages of a document up to
its vectors are in `stages`.

The order of writes is safe against crashes (ADR 6): first write the ledger entry without its file
hash, which marks the document as incomplete; then upsert points, update payloads, delete stale
points, and write the complete ledger entry. After a crash between two writes the store has the old
points, the new points or both, and the next run repairs the document.
"""

from __future__ import annotations

import json
import logging
import time
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import (
    ConfigurationError,
    EmbeddingServiceError,
    RagPipelineError,
    RebuildIncompleteError,
    StoreError,
    StoreLockedError,
    StoreNotWritableError,
    StoreUnavailableError,
)
from rag_pipeline.core.ids import DocId, PointId, hash_text, to_point_id
from rag_pipeline.core.models import Chunk, DiscoveredDoc, DocFailure, Document, Payload, Stage
from rag_pipeline.core.payload import build_payload
from rag_pipeline.core.protocols import LedgerFailure, PointFilter, PointStore
from rag_pipeline.core.rules import Finding, check_documents, find_shared_addresses
from rag_pipeline.core.threads import LeavableThreads
from rag_pipeline.core.vectors import Point
from rag_pipeline.ingestion import planning
from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest, now_utc
from rag_pipeline.ingestion.events import DocDeleted, RunEnded, RunFailed, RunPlanned
from rag_pipeline.ingestion.site.detection import check_sources
from rag_pipeline.ingestion.stages import (
    PART_CHUNKS,
    DocInProgress,
    IngestionRun,
    describe_failure,
    embed_docs,
    prepare_doc,
    read_vectors,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence

    from rag_pipeline.core.protocols import Announce
    from rag_pipeline.ingestion.events import IngestionEvent
    from rag_pipeline.ingestion.planning import Scan


_LOG: Final = logging.getLogger(__name__)
_ALWAYS_ALLOWED: Final = 5  # documents, so that a small book can be changed as one likes
_SETTING: Final = "MAX_DELETED_SHARE"


def check_deletes(context: IngestionContext, scan: Scan, gone: Collection[DocId]) -> None:
    """Check that a run does not delete too much of a book that several machines share.

    A book with its ledger in DATA_DIR belongs to one machine, whose docs folder is all there is. A
    document whose content is in the docs folder at another path has moved and does not count.

    Args:
        context: The settings and services.
        scan: A scan of all documents.
        gone: The documents that the run would delete.

    Raises:
        ConfigurationError: They are more than 5 documents and more than MAX_DELETED_SHARE of the
            documents in the ledger. Nothing was changed.
    """
    if not context.settings.database_url:
        return
    contents = {doc.sha256 for doc in scan.discovery.docs}
    entries = scan.entries
    lost = sum(doc_id in entries and entries[doc_id].sha256 not in contents for doc_id in gone)
    share = context.settings.max_deleted_share
    if lost <= _ALWAYS_ALLOWED or lost <= share * len(entries):
        return
    folder = context.settings.docs_dir
    problem = (
        f"the run would delete {lost} of {len(entries)} documents, because {folder} does not "
        f"contain them, and {share:g} is the largest share"
    )
    if entries.keys().isdisjoint(doc.doc_id for doc in scan.discovery.docs):
        problem += ". Another book may have the same QDRANT_COLLECTION or STATE_NAME"
    remedy = f"Complete the checkout, or run `{_SETTING}=1 rag-pipeline ingest` to delete them"
    raise ConfigurationError(_SETTING, problem, remedy)


_CONCERNS_ALL: Final = (
    ConfigurationError,
    EmbeddingServiceError,
    StoreNotWritableError,
    StoreUnavailableError,
)
"""Errors that every other document would meet too, so they end the run."""

_GROUP_CHUNKS: Final = PART_CHUNKS  # limits the work that is lost when the run is killed


def carry_out(run: IngestionRun, announce: Announce) -> Generator[IngestionEvent]:
    """Process the documents of a run in groups of about 256 chunks, then delete those to delete.

    The store is open only while a group is written. While the caller records the results of a
    group, a thread embeds the next group.

    Args:
        run: The run.
        announce: Tells other processes how many documents are done, and how many there are.

    Raises:
        EmbeddingServiceError: The embedding service does not answer. The message says how many
            documents are indexed.
    """
    scan = run.scan
    total = len(scan.discovery.docs) + len(scan.discovery.failures)
    done = total - len({doc.doc_id for doc in (*scan.process, *run.docs)})
    announce(done, total)
    if run.docs and scan.delete:
        with run.hold_store() as store:
            gone = PointFilter.any_of(doc_path=scan.delete)
            found = store.scroll_fields(("content_hash", "ingested_at"), gone)
            run.times_by_content = read_ingestion_times(payload for _, payload in found)
    groups = _embed_groups(run)
    try:
        with LeavableThreads(1, "embedding") as thread:
            group = next(groups, None)
            while group is not None:
                _write_group(run, _without_failures(group))
                following = thread.submit(next, groups, None)
                for work in group:
                    work.vectors = []  # the next group needs the memory
                    for chunk in work.chunks:
                        run.places.add((chunk.url.partition("#")[0], chunk.doc_path))
                    yield from work.results.values()
                    done += 1
                    announce(done, total)
                    if work.failure is not None:
                        failure = _record_failure(run, work.doc, work.failure)
                        run.failed.append(failure)
                        yield failure
                group = following.result()
    except EmbeddingServiceError as error:
        rest = f"{done} of {total} documents are indexed; the next ingest continues with the others"
        raise EmbeddingServiceError(f"{error}. {rest}") from error
    if run.deletes:
        entries = run.ledger.entries()
        now = planning.compare(run.context.fingerprint_of, scan.discovery, "", entries, {})
        yield from delete_docs(run, planning.leave_moved(run.deletes, scan.entries, now.process))


def _embed_groups(run: IngestionRun) -> Iterator[list[DocInProgress]]:
    """Parse, chunk and embed the documents, and yield them in groups of about 256 chunks."""
    group: list[DocInProgress] = []
    for doc in run.docs:
        work = DocInProgress(doc)
        with _keep_failure(work, Stage.PARSED):
            prepare_doc(run, work)
        group.append(work)
        if doc is run.docs[-1] or sum(len(entry.chunks) for entry in group) >= _GROUP_CHUNKS:
            _embed_group(run, _without_failures(group))
            yield group
            group = []


def _embed_group(run: IngestionRun, group: Sequence[DocInProgress]) -> None:
    """Embed the texts of all documents of a group in one call.

    If the texts cannot be embedded, embed each document on its own, so that only the documents with
    such texts fail.

    Raises:
        EmbeddingServiceError: The service does not answer. Other documents would fail too.
    """
    try:
        embed_docs(run, group)
    except _CONCERNS_ALL:
        raise
    except Exception as error:  # noqa: BLE001  # a single bad document must not fail the group
        for work in group:
            if len(group) == 1:
                work.fail(Stage.EMBEDDINGS, error)
                return
            with _keep_failure(work, Stage.EMBEDDINGS):
                embed_docs(run, [work])


def _write_group(run: IngestionRun, group: Sequence[DocInProgress]) -> None:
    """Write the points of a group to the disk and record them, then read them back."""
    if not group:
        return
    try:
        opened = run.hold_store()
    except RagPipelineError as error:
        if isinstance(error, _CONCERNS_ALL) and not isinstance(error, StoreLockedError):
            raise
        for work in group:
            work.fail(Stage.POINTS, error)
        return
    with opened as store:
        new = []
        for work in group:
            if work.doc.doc_id not in run.scan.entries:
                new.append(work)
                continue
            with _keep_failure(work, Stage.POINTS):
                write_points(run, work, store)
                record_points(run, work)
        if new:
            _write_new(run, new, store)
        check_points(run, _without_failures(group), store)


def _write_new(run: IngestionRun, group: Sequence[DocInProgress], store: PointStore) -> None:
    """Write the points of documents that have none yet, then record the documents.

    The points reach the disk together, which saves most of the time. A kill before that changes no
    existing point.
    """
    try:
        with store.write_together():
            for work in group:
                with _keep_failure(work, Stage.POINTS):
                    write_points(run, work, store)
            start = time.perf_counter()
    except _CONCERNS_ALL:
        raise
    except StoreError as error:  # the points may not be on the disk, so none is recorded
        for work in _without_failures(group):
            work.fail(Stage.POINTS, error)
        return
    flush_s = time.perf_counter() - start
    written = _without_failures(group)
    for work in written:
        with _keep_failure(work, Stage.POINTS):
            record_points(run, work, flush_s / len(written))


def _without_failures(group: Iterable[DocInProgress]) -> list[DocInProgress]:
    return [work for work in group if work.failure is None]


@contextmanager
def _keep_failure(work: DocInProgress, stage: Stage) -> Iterator[None]:
    """Store an exception of the `with` block as the document's failure instead of raising it.

    An error that concerns all documents is raised.
    """
    try:
        yield
    except _CONCERNS_ALL:
        raise
    except Exception as error:  # noqa: BLE001  # no content of a page may stop the run
        work.fail(stage, error)


def _record_failure(run: IngestionRun, doc: DiscoveredDoc, failure: DocFailure) -> DocFailure:
    """Write a failure to the ledger and return it; an error of writing is added to its message."""
    before = run.scan.failures.get(doc.doc_id)
    attempts = before.attempts if before is not None and before.sha256 == doc.sha256 else 0
    try:
        run.ledger.record_failure(
            LedgerFailure(
                doc_id=doc.doc_id,
                sha256=doc.sha256,
                stage=failure.stage,
                error=failure.error,
                message=failure.message,
                attempts=attempts + 1,
                failed_at=now_utc(),
            )
        )
    except (RagPipelineError, OSError) as error:
        message = f"{failure.message} (the failure could not be written to the ledger: {error})"
        return replace(failure, message=message)
    return failure


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
        fields = store.scroll_fields(("doc_path",), PointFilter.any_of(doc_path=tuple(chunks)))
        ids = [point_id for point_id, _ in fields]
        points = (
            point
            for at in range(0, len(ids), PART_CHUNKS)
            for point in store.fetch(ids[at : at + PART_CHUNKS], with_vectors=True)
        )
        found = check_documents(chunks, points, limits, dim)
    except StoreError as error:
        detail = f"the points cannot be read back: {error}"
        found = {doc_id: (Finding("points_equal_chunks", doc_id, "", detail),) for doc_id in chunks}
    for work in group:
        faults = found[work.doc.doc_id]
        work.results[Stage.POINTS] = replace(work.results[Stage.POINTS], faults=faults)


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
    return hash_text(text)[:16]


def _contents(payload: Payload) -> Payload:
    """Return a payload without its time of ingestion."""
    return {key: value for key, value in payload.items() if key != "ingested_at"}


def run_ingestion(
    context: IngestionContext, request: IngestionRequest, run_id: str, earlier: Scan | None = None
) -> Generator[IngestionEvent]:
    """Process and delete the requested documents, and yield an event for each result.

    Args:
        context: The settings and services.
        request: The documents to process.
        run_id: Id of the run, for the ledger and the report.
        earlier: A scan that the caller has made. It is used if the ledger has not changed since.

    Yields:
        `RunPlanned` first, then the results and failures of documents, then `RunEnded`. If an
        error aborts the run, the last event is `RunFailed`, and then the error is raised.

    Raises:
        DocsFolderError: The docs folder is missing or empty. Nothing was changed.
        ConfigurationError: The run would delete too much of the book. Nothing was changed.
        SpaceMismatchError: The current collection needs a rebuild. Nothing was changed.
        PlanOutdatedError: The run was planned for other documents. Nothing was changed.
        StoreUnavailableError: Another process holds the lock or the store, or no server answers.
        EmbeddingServiceError: The service does not answer. The next run continues.
        RebuildIncompleteError: Documents failed in a rebuild. The current collection was kept.
    """
    start, services = time.perf_counter(), context.services
    try:
        # A run with a plan shares the book with other such runs, and takes no lock of the book.
        lock = nullcontext() if request.plan else services.lock()
        with lock, services.announce() as announce:
            if not request.plan:
                services.catalog.recover()
                with suppress(RagPipelineError, OSError):  # the next run cleans up instead
                    services.sweep()
            run = plan_run(context, request, run_id, earlier)
            planned = RunPlanned(run_id, run.scan, tuple(doc.doc_id for doc in run.docs))
            yield planned
            yield from run.failed
            with run.hold_store() if request.rebuild else nullcontext() as run.store:
                yield from carry_out(run, announce)
            end_run(run, planned)
    except Exception as error:
        yield RunFailed(error)
        raise
    finally:  # so that a killed process or a copy of the folder finds the cache in one file
        services.cache.close()
    warnings = tuple(
        f"{' and '.join(doc_paths)} have the same address {address}, but only one page can be "
        "there. Give each page a slug or file name of its own"
        for address, doc_paths in find_shared_addresses(run.places).items()
    )
    yield RunEnded(time.perf_counter() - start, warnings)


def plan_run(
    context: IngestionContext, request: IngestionRequest, run_id: str, earlier: Scan | None
) -> IngestionRun:
    """Compare the docs folder with the ledger, and choose the collection and the documents.

    Documents that another living run has claimed are left to it. The arguments and errors are those
    of `run_ingestion`.
    """
    scan = planning.scan_docs(context, earlier=earlier, reread=request.reread)
    gone = () if request.rebuild else scan.delete
    check_sources(context.settings, gone, planning.find_ledger(context, scan))
    check_deletes(context, scan, planning.choose_docs(request, scan)[1])
    collection_id = planning.choose_collection(context, rebuild=request.rebuild)
    if collection_id != scan.collection_id:  # its ledger is empty, so all documents are new
        scan = planning.compare(context.fingerprint_of, scan.discovery, collection_id, {}, {})
    planning.check_plan(context, request, scan)
    docs, deletes, failures = planning.choose_docs(request, scan)
    ledger = context.services.open_ledger(collection_id)
    if context.services.run_locks is not None:  # else `lock` excludes all other runs
        mine = ledger.claim({*(doc.doc_id for doc in docs), *deletes}, run_id)
        docs = [doc for doc in docs if doc.doc_id in mine]
        deletes = [doc_id for doc_id in deletes if doc_id in mine]
    return IngestionRun(context, request, run_id, scan, ledger, docs, deletes, [*failures])


def end_run(run: IngestionRun, planned: RunPlanned) -> None:
    """Prepare the collection for searches, and record the end of the run in the ledger.

    A rebuilt collection becomes the current one.

    Raises:
        RebuildIncompleteError: Documents failed in a rebuild. Its collection was deleted.
    """
    catalog, scan = run.context.services.catalog, run.scan
    if run.request.rebuild and catalog.current_id() != scan.collection_id:
        if run.failed:
            catalog.discard(scan.collection_id)
            raise RebuildIncompleteError([(each.doc_path, each.message) for each in run.failed])
        catalog.switch_to(scan.collection_id)
    else:
        planning.refresh_ledger(run.ledger, planned.unchanged, scan.entries)
        if {doc.doc_id for doc in scan.process} <= set(planned.doc_ids):
            catalog.end_loading(scan.collection_id)
    planning.record_site(run.context, run.ledger)
    run.ledger.release(run.run_id)
