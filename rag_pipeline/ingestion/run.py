"""Run one ingestion from start to end and yield its events.

The flow is in `run_ingestion`. Documents are processed in groups. The stages of a document are in
`stages`, `embedding` and `writing`.
"""

from __future__ import annotations

import shutil
import time
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import replace
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
from rag_pipeline.core.models import DiscoveredDoc, DocFailure, Stage
from rag_pipeline.core.protocols import LedgerFailure, PointFilter, PointStore, Services
from rag_pipeline.core.threads import LeavableThreads
from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest, now_utc
from rag_pipeline.ingestion.events import RunEnded, RunFailed, RunPlanned, StageDone, follow_run
from rag_pipeline.ingestion.planning import (
    Scan,
    check_plan,
    choose_collection,
    choose_docs,
    describe_shared_addresses,
    find_ledger,
    leave_moved,
    plan_ingestion,
    record_site,
    refresh_ledger,
    scan_docs,
)
from rag_pipeline.ingestion.site.detection import check_sources
from rag_pipeline.ingestion.stages import (
    PART_CHUNKS,
    DocInProgress,
    IngestionRun,
    describe_failure,
    embed_docs,
    prepare_doc,
)
from rag_pipeline.ingestion.writing import (
    check_points,
    delete_docs,
    read_ingestion_times,
    record_points,
    write_points,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator, Sequence

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.ingestion.events import DocDeleted, IngestionEvent


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


def carry_out(
    run: IngestionRun, docs: Sequence[DiscoveredDoc], deletes: Sequence[DocId]
) -> Generator[IngestionEvent]:
    """Process `docs` in groups of about 256 chunks, then delete the documents in `deletes`.

    The store is open only while a group is written. While the caller records the results of a
    group, a thread embeds the next group.
    """
    groups = _embed_groups(run, docs)
    with LeavableThreads(1, "embedding") as thread:
        group = next(groups, None)
        while group is not None:
            _write_group(run, _without_failures(group))
            following = thread.submit(next, groups, None)
            yield from _list_results(run, group)
            group = following.result()
    if deletes:
        made_with = run.context.fingerprint_of
        rest = plan_ingestion(run.scan.discovery, run.ledger.entries(), made_with).process
        yield from _delete_docs(run, leave_moved(deletes, run.scan.entries, rest))


def _embed_groups(
    run: IngestionRun, docs: Sequence[DiscoveredDoc]
) -> Iterator[list[DocInProgress]]:
    """Parse, chunk and embed `docs`, and yield them in groups of about 256 chunks."""
    group: list[DocInProgress] = []
    for doc in docs:
        work = DocInProgress(doc)
        with _keep_failure(work, Stage.PARSED):
            prepare_doc(run, work)
        group.append(work)
        if doc is docs[-1] or sum(len(entry.chunks) for entry in group) >= _GROUP_CHUNKS:
            _embed_group(run, _without_failures(group))
            yield group
            group = []


def _list_results(run: IngestionRun, group: Sequence[DocInProgress]) -> Iterator[IngestionEvent]:
    """Yield the results and failures of a group that was written."""
    for work in group:
        work.vectors = ()  # the next group needs the memory
        yield from work.results.values()
        if work.failure is not None:
            yield _record_failure(run, work.doc, work.failure)


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
                work.failure = describe_failure(work.doc.doc_id, Stage.EMBEDDINGS, error)
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
            work.failure = describe_failure(work.doc.doc_id, Stage.POINTS, error)
        return
    with opened as store:
        entries = run.scan.entries
        for work in group:
            if work.doc.doc_id in entries:
                with _keep_failure(work, Stage.POINTS):
                    record_points(run, work, write_points(run, work, store))
        _write_new(run, [work for work in group if work.doc.doc_id not in entries], store)
        check_points(run, _without_failures(group), store)


def _write_new(run: IngestionRun, group: Sequence[DocInProgress], store: PointStore) -> None:
    """Write the points of documents that have none yet, then record the documents.

    The points reach the disk together, which saves most of the time. A kill before that changes no
    existing point.
    """
    if not group:
        return
    written: list[tuple[DocInProgress, StageDone]] = []
    try:
        with store.write_together():
            for work in group:
                with _keep_failure(work, Stage.POINTS):
                    written.append((work, write_points(run, work, store)))
            start = time.perf_counter()
    except _CONCERNS_ALL:
        raise
    except StoreError as error:  # the points may not be on the disk, so none is recorded
        for work in _without_failures(group):
            work.failure = describe_failure(work.doc.doc_id, Stage.POINTS, error)
        return
    flush_s = time.perf_counter() - start
    for work, done in written:
        with _keep_failure(work, Stage.POINTS):
            record_points(run, work, done, flush_s / len(written))


def _delete_docs(run: IngestionRun, doc_ids: Sequence[DocId]) -> Iterator[DocDeleted | DocFailure]:
    try:
        opened = run.hold_store()
    except RagPipelineError as error:
        for doc_id in doc_ids:
            yield describe_failure(doc_id, Stage.POINTS, error)
        return
    with opened as store:
        yield from delete_docs(run, doc_ids, store)


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
        work.failure = describe_failure(work.doc.doc_id, stage, error)


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


# Bytes in the embedded store and in the embedding cache per byte of Markdown. The textbook needs 59
# with the local model, and 16 with a service whose vectors have 256 numbers
# (docs/reference/state.md).
_WITH_WINDOWS: Final = 50
_WITHOUT_WINDOWS: Final = 15


def check_room(context: IngestionContext, planned: RunPlanned) -> None:
    """Check that DATA_DIR has room for the documents of a run that the ledger does not list yet.

    The need is a low estimate, so that no possible ingestion is refused. The store checks the room
    again before each write. A server is not checked.

    Raises:
        StoreError: The disk has too little room.
    """
    settings = context.settings
    if settings.qdrant_url:
        return
    sizes = {doc.doc_id: doc.size_bytes for doc in planned.scan.discovery.docs}
    new = [doc_id for doc_id in planned.doc_ids if doc_id not in planned.scan.entries]
    has_windows = context.services.embedder.model.window_words is not None
    factor = _WITH_WINDOWS if has_windows else _WITHOUT_WINDOWS
    needed = factor * sum(sizes[doc_id] for doc_id in new)
    data_dir = settings.data_dir.absolute()
    place = next(path for path in (data_dir, *data_dir.parents) if path.exists())
    free = shutil.disk_usage(place).free
    if free < needed:
        raise StoreError(
            f"only {free // 1_000_000} MB are free in {settings.data_dir}, and {len(new)} new "
            f"documents need about {-(-needed // 1_000_000)} MB there. Free disk space, or set "
            "DATA_DIR to a folder with more space"
        )


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
                _clean_up(services)
            scan = scan_docs(context, earlier=earlier, reread=request.reread)
            _check_gone(context, request, scan)
            target = _choose_target(context, request, scan)
            docs, deletes, failures = _choose_free(context, request, run_id, target)
            planned = RunPlanned(run_id, target, tuple(doc.doc_id for doc in docs))
            yield planned
            yield from failures
            failed, places = list(failures), set[tuple[str, str]]()
            run = _open_run(context, request, planned)
            with ExitStack() as stack:
                if request.rebuild:
                    run = replace(run, store=stack.enter_context(run.hold_store()))
                events = stack.enter_context(closing(carry_out(run, docs, deletes)))
                for event in follow_run(planned, events, announce):
                    if isinstance(event, DocFailure):
                        failed.append(event)
                    if isinstance(event, StageDone):
                        for chunk in event.chunks:
                            places.add((chunk.url.partition("#")[0], chunk.doc_path))
                    yield event
            if request.rebuild and scan.collection_id:
                _switch(run, failed)
            else:
                refresh_ledger(run.ledger, planned.unchanged, target.entries)
                if {doc.doc_id for doc in target.plan.process} <= set(planned.doc_ids):
                    services.catalog.end_loading(target.collection_id)
            record_site(context, run.ledger)
            run.ledger.release(run.run_id)
    except Exception as error:
        yield RunFailed(error)
        raise
    finally:  # so that a killed process or a copy of the folder finds the cache in one file
        services.cache.close()
    yield RunEnded(time.perf_counter() - start, describe_shared_addresses(places))


def _choose_free(
    context: IngestionContext, request: IngestionRequest, run_id: str, scan: Scan
) -> tuple[tuple[DiscoveredDoc, ...], tuple[DocId, ...], tuple[DocFailure, ...]]:
    """Return what `choose_docs` does, without documents that another living run has claimed."""
    docs, deletes, failures = choose_docs(request, scan)
    if context.services.run_locks is None:  # one machine, on which `lock` excludes all others
        return docs, deletes, failures
    wanted = {*(doc.doc_id for doc in docs), *deletes}
    mine = context.services.open_ledger(scan.collection_id).claim(wanted, run_id)
    free = tuple(doc for doc in docs if doc.doc_id in mine)
    return free, tuple(doc_id for doc_id in deletes if doc_id in mine), failures


def _clean_up(services: Services) -> None:
    services.catalog.recover()
    with suppress(RagPipelineError, OSError):  # the next run cleans up instead
        services.sweep()


def _check_gone(context: IngestionContext, request: IngestionRequest, scan: Scan) -> None:
    """Check that the documents that a run would delete were not lost by mistake.

    Raises:
        ConfigurationError: Their folder is not named, or they are too many. Nothing was changed.
    """
    gone = () if request.rebuild else scan.plan.delete
    check_sources(context.settings, gone, find_ledger(context, scan))
    check_deletes(context, scan, choose_docs(request, scan)[1])


def _choose_target(context: IngestionContext, request: IngestionRequest, scan: Scan) -> Scan:
    """Return the scan of the collection to write to; a new collection plans all documents.

    Raises:
        PlanOutdatedError: The run was planned for other documents. Nothing was changed.
    """
    collection_id = choose_collection(context, rebuild=request.rebuild)
    if collection_id != scan.collection_id:
        plan = plan_ingestion(scan.discovery, {}, context.fingerprint_of)  # a new ledger is empty
        scan = Scan(scan.discovery, collection_id, {}, {}, plan)
    check_plan(context, request, scan)
    return scan


def _open_run(
    context: IngestionContext, request: IngestionRequest, planned: RunPlanned
) -> IngestionRun:
    check_room(context, planned)
    scan, services = planned.scan, context.services
    ledger = services.open_ledger(scan.collection_id)
    run = IngestionRun(context, request, planned.run_id, scan, ledger)
    if planned.doc_ids and scan.plan.delete:
        with run.hold_store() as store:
            where = PointFilter.any_of(doc_path=scan.plan.delete)
            found = store.scroll_fields(("content_hash", "ingested_at"), where)
            times = read_ingestion_times(payload for _, payload in found)
            return replace(run, times_by_content=times)
    return run


def _switch(run: IngestionRun, failed: Sequence[DocFailure]) -> None:
    """Make the rebuilt collection the current one; discard it and raise if documents failed."""
    catalog = run.context.services.catalog
    if failed:
        catalog.discard(run.scan.collection_id)
        raise RebuildIncompleteError([(each.doc_path, each.message) for each in failed])
    catalog.switch_to(run.scan.collection_id)
