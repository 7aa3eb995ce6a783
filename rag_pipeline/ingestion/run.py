"""Run one ingestion from start to end and yield its events.

The flow is in `run_ingestion`. The module `processing` carries out the plan.
The stages of a document are in `stages` and `writing`.
"""

from __future__ import annotations

import shutil
import time
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import RagPipelineError, RebuildIncompleteError, StoreError
from rag_pipeline.core.models import DocFailure
from rag_pipeline.ingestion.events import RunEnded, RunFailed, RunPlanned, RunProgress, StageDone
from rag_pipeline.ingestion.planning import (
    Scan,
    check_plan,
    choose_collection,
    choose_docs,
    describe_shared_addresses,
    find_ledger,
    plan_ingestion,
    record_site,
    refresh_ledger,
    scan_docs,
)
from rag_pipeline.ingestion.processing import carry_out, check_deletes
from rag_pipeline.ingestion.site.detection import check_sources
from rag_pipeline.ingestion.stages import IngestionRun
from rag_pipeline.ingestion.writing import read_times_of

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from contextlib import AbstractContextManager

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.models import DiscoveredDoc
    from rag_pipeline.core.protocols import Services
    from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest
    from rag_pipeline.ingestion.events import IngestionEvent


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
    context: IngestionContext,
    request: IngestionRequest,
    run_id: str,
    earlier: Scan | None = None,
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
        with _exclude_others(services, request), services.announce() as announce:
            if not request.plan:
                _clean_up(services)
            scan = scan_docs(context, earlier=earlier, reread=request.reread)
            _check_sources(context, request, scan)
            check_deletes(context, scan, choose_docs(request, scan)[1])
            target = _choose_target(context, request, scan)
            check_plan(context, request, target)
            docs, deletes, failures = _choose_free(context, request, run_id, target)
            planned = RunPlanned(run_id, target, tuple(doc.doc_id for doc in docs))
            progress = RunProgress(planned, announce)
            yield planned
            yield from failures
            failed, places = list(failures), set[tuple[str, str]]()
            run = _open_run(context, request, planned)
            with ExitStack() as stack:
                if request.rebuild:
                    run = replace(run, store=stack.enter_context(run.hold_store()))
                for event in progress.follow(carry_out(run, docs, deletes)):
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
            _finish(context, run)
    except Exception as error:
        yield RunFailed(error)
        raise
    finally:  # so that a killed process or a copy of the folder finds the cache in one file
        services.cache.close()
    yield RunEnded(time.perf_counter() - start, describe_shared_addresses(places))


def _exclude_others(services: Services, request: IngestionRequest) -> AbstractContextManager[None]:
    """Return the lock of the whole book; a run with a plan shares the book with other such runs."""
    return nullcontext() if request.plan else services.lock()


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


def _finish(context: IngestionContext, run: IngestionRun) -> None:
    record_site(context, run.ledger)
    run.ledger.release(run.run_id)


def _clean_up(services: Services) -> None:
    services.catalog.recover()
    with suppress(RagPipelineError, OSError):  # the next run cleans up instead
        services.sweep()


def _check_sources(context: IngestionContext, request: IngestionRequest, scan: Scan) -> None:
    gone = () if request.rebuild else scan.plan.delete
    check_sources(context.settings, gone, find_ledger(context, scan))


def _choose_target(context: IngestionContext, request: IngestionRequest, scan: Scan) -> Scan:
    """Return the scan of the collection to write to; a new collection plans all documents."""
    collection_id = choose_collection(context, rebuild=request.rebuild)
    if collection_id == scan.collection_id:
        return scan
    plan = plan_ingestion(scan.discovery, {}, context.fingerprint_of)  # a new ledger is empty
    return Scan(scan.discovery, collection_id, {}, {}, plan)


def _open_run(
    context: IngestionContext, request: IngestionRequest, planned: RunPlanned
) -> IngestionRun:
    check_room(context, planned)
    scan, services = planned.scan, context.services
    ledger = services.open_ledger(scan.collection_id)
    run = IngestionRun(context, request, planned.run_id, scan, ledger)
    if planned.doc_ids and scan.plan.delete:
        with run.hold_store() as store:
            return replace(run, times_by_content=read_times_of(scan.plan.delete, store))
    return run


def _switch(run: IngestionRun, failed: Sequence[DocFailure]) -> None:
    """Make the rebuilt collection the current one; discard it and raise if documents failed."""
    catalog = run.context.services.catalog
    if failed:
        catalog.discard(run.scan.collection_id)
        raise RebuildIncompleteError([(each.doc_path, each.message) for each in failed])
    catalog.switch_to(run.scan.collection_id)
