"""One ingestion from start to end, as a stream of events.

Scan the docs folder, choose the collection, take the documents through the stages in groups,
delete what is gone, and switch after a rebuild. One document's failure never affects another.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import ConfigurationError, RagPipelineError, RebuildIncompleteError
from rag_pipeline.core.models import DocFailure, Stage
from rag_pipeline.core.protocols.state import LedgerFailure
from rag_pipeline.ingestion.context import now_utc
from rag_pipeline.ingestion.events import DocDeleted, RunEnded, RunFailed, RunPlanned
from rag_pipeline.ingestion.planning import (
    Scan,
    choose_collection,
    choose_docs,
    leave_moved,
    plan_ingestion,
    scan_docs,
)
from rag_pipeline.ingestion.stages import (
    DocInProgress,
    IngestionRun,
    embed_docs,
    load_embeddings,
    prepare_doc,
)
from rag_pipeline.ingestion.writing import check_points, delete_doc, read_times_of, write_points

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.models import DiscoveredDoc
    from rag_pipeline.core.protocols.state import Ledger, LedgerEntry
    from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest
    from rag_pipeline.ingestion.events import IngestionEvent

_GROUP_CHUNKS: Final = 256  # texts embedded together: bounds memory and what a kill costs
_FAILURES_IN_ROW: Final = 3  # documents; then the service counts as down for the rest of a group


def run_ingestion(
    context: IngestionContext,
    request: IngestionRequest,
    run_id: str,
    earlier: Scan | None = None,
) -> Generator[IngestionEvent]:
    """Ingest what a request asks for.

    Args:
        context: The settings and services.
        request: What to ingest.
        run_id: Written into the ledger and the report.
        earlier: A scan by the caller. It is used if the ledger has not changed since, so that the
            docs folder is read once.

    Yields:
        `RunPlanned` first, then the results and failures of documents, then `RunEnded`. If an
        error ends the run, `RunFailed` is the last event, and the error is raised after it.

    Raises:
        DocsFolderError: The docs folder is missing or empty; nothing was changed.
        SpaceMismatchError: The collection in use needs a rebuild; nothing was changed.
        StoreUnavailableError: Another ingestion or process holds the store, or no server answers.
        RebuildIncompleteError: Documents failed in a rebuild; the collection in use stays in use.
    """
    start = time.perf_counter()
    services = context.services
    try:
        with services.lock():
            with suppress(RagPipelineError, OSError):  # a later run tries again
                services.sweep()
            scan = scan_docs(context, earlier=earlier, reread=request.reread)
            target = _choose_target(context, request, scan)
            docs, deletes, failures = choose_docs(request, target)
            planned = RunPlanned(run_id, target, tuple(doc.doc_id for doc in docs))
            yield planned
            yield from failures
            failed = list(failures)
            run = _open_run(context, request, planned)
            with ExitStack() as held:
                if request.rebuild:
                    run = replace(run, store=held.enter_context(run.hold_store()))
                for event in _carry_out(run, docs, deletes):
                    if isinstance(event, DocFailure):
                        failed.append(event)
                    yield event
            if request.rebuild and scan.collection_id:
                _switch(run, failed)
            else:
                refresh_ledger(run.ledger, planned.unchanged, target.entries)
    except Exception as error:
        yield RunFailed(error)
        raise
    yield RunEnded(time.perf_counter() - start)


def _choose_target(context: IngestionContext, request: IngestionRequest, scan: Scan) -> Scan:
    """Compare the docs folder with the collection that the run writes to."""
    collection_id = choose_collection(context, rebuild=request.rebuild)
    if collection_id == scan.collection_id:
        return scan
    plan = plan_ingestion(scan.discovery, {}, context.fingerprint)  # a new one, with no entries
    return Scan(scan.discovery, collection_id, {}, {}, plan)


def _open_run(
    context: IngestionContext, request: IngestionRequest, planned: RunPlanned
) -> IngestionRun:
    scan, services = planned.scan, context.services
    ledger = services.open_ledger(scan.collection_id)
    artifacts = services.open_artifacts(scan.collection_id)
    artifacts.keep_only(scan.doc_ids)
    run = IngestionRun(context, request, planned.run_id, scan, ledger, artifacts)
    if planned.doc_ids and scan.plan.delete and Stage.POINTS in request.stages:
        with run.hold_store() as store:
            return replace(run, times_by_content=read_times_of(scan.plan.delete, store))
    return run


def _carry_out(
    run: IngestionRun, docs: Sequence[DiscoveredDoc], deletes: Sequence[DocId]
) -> Iterator[IngestionEvent]:
    """Process documents in groups of about 256 chunks, then delete those that are gone.

    The documents of a group are parsed and chunked one by one, embedded together, then written one
    by one. The store is open only while a group is written.
    """
    group: list[DocInProgress] = []
    for doc in docs:
        work = DocInProgress(doc)
        with _keep_failure(work, Stage.PARSED):
            prepare_doc(run, work)
        group.append(work)
        if sum(len(entry.chunks) for entry in group) >= _GROUP_CHUNKS:
            yield from _finish_group(run, group)
            group = []
    if group:
        yield from _finish_group(run, group)
    if deletes:
        fingerprint = run.context.fingerprint
        rest = plan_ingestion(run.scan.discovery, run.ledger.entries(), fingerprint).process
        yield from _delete_docs(run, leave_moved(deletes, run.scan.entries, rest))


def _switch(run: IngestionRun, failed: Sequence[DocFailure]) -> None:
    """Put a rebuilt collection in use, or discard it if documents failed."""
    catalog = run.context.services.catalog
    if failed:
        catalog.discard(run.scan.collection_id)
        raise RebuildIncompleteError([(each.doc_path, each.message) for each in failed])
    catalog.switch_to(run.scan.collection_id)


def _finish_group(run: IngestionRun, group: Sequence[DocInProgress]) -> Iterator[IngestionEvent]:
    if Stage.EMBEDDINGS in run.request.stages:
        _embed_group(run, _without_failures(group))
    elif Stage.POINTS in run.request.stages:
        for work in _without_failures(group):
            with _keep_failure(work, Stage.EMBEDDINGS):
                load_embeddings(run, work)
    if Stage.POINTS in run.request.stages:
        _write_group(run, _without_failures(group))
    for work in group:
        yield from work.results.values()
        if work.failure is not None:
            yield _record_failure(run, work.doc, work.failure)


def _embed_group(run: IngestionRun, group: Sequence[DocInProgress]) -> None:
    """Embed the texts of many documents in one call.

    If that fails, embed document by document, until several in a row have failed.
    """
    try:
        embed_docs(run, group)
    except ConfigurationError:
        raise
    except Exception as error:  # noqa: BLE001  # one document must not cost the others: find which it is
        failed_in_row = 0 if len(group) > 1 else _FAILURES_IN_ROW
        for work in group:
            if failed_in_row >= _FAILURES_IN_ROW:
                work.failure = _describe_failure(work.doc.doc_id, Stage.EMBEDDINGS, error)
                continue
            with _keep_failure(work, Stage.EMBEDDINGS):
                embed_docs(run, [work])
            failed_in_row = 0 if work.failure is None else failed_in_row + 1


def _write_group(run: IngestionRun, group: Sequence[DocInProgress]) -> None:
    """Write the points of a group, and check what was written while the store is still open."""
    if not group:
        return
    try:
        held = run.hold_store()
    except RagPipelineError as error:
        for work in group:
            work.failure = _describe_failure(work.doc.doc_id, Stage.POINTS, error)
        return
    with held as store:
        for work in group:
            with _keep_failure(work, Stage.POINTS):
                write_points(run, work, store)
        check_points(run, _without_failures(group), store)


def _delete_docs(run: IngestionRun, doc_ids: Sequence[DocId]) -> Iterator[DocDeleted | DocFailure]:
    try:
        held = run.hold_store()
    except RagPipelineError as error:
        for doc_id in doc_ids:
            yield _describe_failure(doc_id, Stage.POINTS, error)
        return
    with held as store:
        for doc_id in doc_ids:
            yield delete_doc(run, doc_id, store)


def _without_failures(group: Iterable[DocInProgress]) -> list[DocInProgress]:
    return [work for work in group if work.failure is None]


@contextmanager
def _keep_failure(work: DocInProgress, stage: Stage) -> Iterator[None]:
    """Keep the failure of a step in the document instead of raising it.

    A wrong setting is not the document's fault. It ends the run.
    """
    try:
        yield
    except ConfigurationError:
        raise
    except Exception as error:  # noqa: BLE001  # one page must not cost the others, whatever is in it
        work.failure = _describe_failure(work.doc.doc_id, stage, error)


def _describe_failure(doc_id: DocId, stage: Stage, error: Exception) -> DocFailure:
    """Describe what went wrong. The message of an unforeseen error names the document."""
    message, name = str(error), type(error).__name__
    if not isinstance(error, (RagPipelineError, OSError)):
        message = f"{doc_id}: {name} in {stage.value}: {message}. Please report it with the page"
    return DocFailure(doc_id, stage.value, name, message)


def _record_failure(run: IngestionRun, doc: DiscoveredDoc, failure: DocFailure) -> DocFailure:
    """Count a failure in the ledger. A ledger that cannot be written must not hide it."""
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
        message = f"{failure.message} (and the ledger could not be written: {error})"
        return replace(failure, message=message)
    return failure


def refresh_ledger(
    ledger: Ledger, unchanged: Iterable[DiscoveredDoc], entries: Mapping[DocId, LedgerEntry]
) -> None:
    """Record new times of files whose content is unchanged, so that the next scan skips them."""
    for doc in unchanged:
        entry = entries[doc.doc_id]
        if entry.mtime_ns != doc.mtime_ns:
            ledger.record(replace(entry, mtime_ns=doc.mtime_ns, size_bytes=doc.size_bytes))


def sweep_if_idle(context: IngestionContext, doc_ids: Collection[DocId]) -> None:
    """Delete what killed ingestions left behind, if no other ingestion is running.

    For an ingestion that has nothing else to do. A running ingestion sweeps for itself. What fails
    here, a later sweep tries again.

    Args:
        context: The settings and services.
        doc_ids: All documents of the docs folder and the ledger.
    """
    services = context.services
    with suppress(RagPipelineError, OSError), services.lock(timeout_s=0.0):
        services.sweep()
        services.open_artifacts(services.catalog.current_id() or "").keep_only(doc_ids)
