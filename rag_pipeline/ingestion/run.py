"""Run one ingestion from start to end and yield its events.

The flow is in `run_ingestion`. Documents are processed in groups. The stages of a document are in
`stages`, `embedding` and `writing`.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, nullcontext, suppress
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
from rag_pipeline.core.protocols import LedgerFailure, PointFilter, PointStore
from rag_pipeline.core.rules import find_shared_addresses
from rag_pipeline.core.threads import LeavableThreads
from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest, now_utc
from rag_pipeline.ingestion.events import RunEnded, RunFailed, RunPlanned
from rag_pipeline.ingestion.planning import (
    Scan,
    check_plan,
    choose_collection,
    choose_docs,
    compare,
    find_ledger,
    leave_moved,
    record_site,
    refresh_ledger,
    scan_docs,
)
from rag_pipeline.ingestion.site.detection import check_sources
from rag_pipeline.ingestion.stages import (
    PART_CHUNKS,
    DocInProgress,
    IngestionRun,
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
    from rag_pipeline.core.protocols import Announce
    from rag_pipeline.ingestion.events import IngestionEvent


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
        now = compare(run.context.fingerprint_of, scan.discovery, scan.collection_id, entries, {})
        yield from delete_docs(run, leave_moved(run.deletes, scan.entries, now.process))


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
    scan = scan_docs(context, earlier=earlier, reread=request.reread)
    gone = () if request.rebuild else scan.delete
    check_sources(context.settings, gone, find_ledger(context, scan))
    check_deletes(context, scan, choose_docs(request, scan)[1])
    collection_id = choose_collection(context, rebuild=request.rebuild)
    if collection_id != scan.collection_id:  # its ledger is empty, so all documents are new
        scan = compare(context.fingerprint_of, scan.discovery, collection_id, {}, {})
    check_plan(context, request, scan)
    docs, deletes, failures = choose_docs(request, scan)
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
        refresh_ledger(run.ledger, planned.unchanged, scan.entries)
        if {doc.doc_id for doc in scan.process} <= set(planned.doc_ids):
            catalog.end_loading(scan.collection_id)
    record_site(run.context, run.ledger)
    run.ledger.release(run.run_id)
