"""Run one ingestion from start to end and yield its events.

The flow is in `run_ingestion`. The stages of a document are in `stages` and `writing`.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import (
    ConfigurationError,
    EmbeddingServiceError,
    RagPipelineError,
    RebuildIncompleteError,
)
from rag_pipeline.core.errors.hiding import describe_kind
from rag_pipeline.core.models import DocFailure, Stage
from rag_pipeline.core.protocols.state import LedgerFailure
from rag_pipeline.ingestion.context import now_utc
from rag_pipeline.ingestion.disk_room import check_room
from rag_pipeline.ingestion.embedding_stage import PART_CHUNKS, embed_docs, load_embeddings
from rag_pipeline.ingestion.events import (
    DocDeleted,
    RunEnded,
    RunFailed,
    RunPlanned,
    StageDone,
)
from rag_pipeline.ingestion.finishing import (
    describe_shared_addresses,
    record_site,
    refresh_ledger,
)
from rag_pipeline.ingestion.planning import (
    Scan,
    choose_collection,
    choose_docs,
    leave_moved,
    plan_ingestion,
    scan_docs,
)
from rag_pipeline.ingestion.progress import RunProgress
from rag_pipeline.ingestion.stages import (
    DocInProgress,
    IngestionRun,
    prepare_doc,
)
from rag_pipeline.ingestion.writing import check_points, delete_doc, read_times_of, write_points

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.models import DiscoveredDoc
    from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest
    from rag_pipeline.ingestion.events import IngestionEvent

_GROUP_CHUNKS: Final = PART_CHUNKS  # limits the work that is lost when the run is killed


def run_ingestion(
    context: IngestionContext,
    request: IngestionRequest,
    run_id: str,
    earlier: Scan | None = None,
) -> Generator[IngestionEvent]:
    """Process and delete the requested documents, and yield an event for each result.

    The failure of one document does not stop the run.

    Args:
        context: The settings and services.
        request: The documents and stages to process.
        run_id: Id of the run, for the ledger and the report.
        earlier: A scan that the caller has made. It is used if the ledger has not changed since.

    Yields:
        `RunPlanned` first, then the results and failures of documents, then `RunEnded`. If an
        error aborts the run, the last event is `RunFailed`, and then the error is raised.

    Raises:
        DocsFolderError: The docs folder is missing or empty. Nothing was changed.
        SpaceMismatchError: The current collection needs a rebuild. Nothing was changed.
        StoreUnavailableError: Another process holds the lock or the store, or no server answers.
        EmbeddingServiceError: The service does not answer. The next run continues.
        RebuildIncompleteError: Documents failed in a rebuild. The current collection was kept.
    """
    start, services = time.perf_counter(), context.services
    try:
        with services.lock(), services.announce() as announce:
            services.catalog.recover()
            with suppress(RagPipelineError, OSError):  # the next run cleans up instead
                services.sweep()
            scan = scan_docs(context, earlier=earlier, reread=request.reread)
            target = _choose_target(context, request, scan)
            docs, deletes, failures = choose_docs(request, target)
            planned = RunPlanned(run_id, target, tuple(doc.doc_id for doc in docs))
            progress = RunProgress(planned, announce)
            yield planned
            yield from failures
            failed, places = list(failures), []
            run = _open_run(context, request, planned)
            with ExitStack() as stack:
                if request.rebuild:
                    run = replace(run, store=stack.enter_context(run.hold_store()))
                for event in progress.follow(_carry_out(run, docs, deletes)):
                    if isinstance(event, DocFailure):
                        failed.append(event)
                    if isinstance(event, StageDone):
                        places += [(chunk.url, chunk.doc_path) for chunk in event.chunks]
                    yield event
            if request.rebuild and scan.collection_id:
                _switch(run, failed)
            else:
                refresh_ledger(run.ledger, planned.unchanged, target.entries)
            record_site(context, run.ledger)
    except Exception as error:
        yield RunFailed(error)
        raise
    finally:  # so that a killed process or a copy of the folder finds the cache in one file
        services.cache.close()
    yield RunEnded(time.perf_counter() - start, describe_shared_addresses(places))


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
    """Process `docs` in groups of about 256 chunks, then delete the documents in `deletes`.

    The store is open only while a group is written.
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
        made_with = run.context.fingerprint_of
        rest = plan_ingestion(run.scan.discovery, run.ledger.entries(), made_with).process
        yield from _delete_docs(run, leave_moved(deletes, run.scan.entries, rest))


def _switch(run: IngestionRun, failed: Sequence[DocFailure]) -> None:
    """Make the rebuilt collection the current one; discard it and raise if documents failed."""
    catalog = run.context.services.catalog
    if failed:
        catalog.discard(run.scan.collection_id)
        raise RebuildIncompleteError([(each.doc_path, each.message) for each in failed])
    catalog.switch_to(run.scan.collection_id)


def _finish_group(run: IngestionRun, group: Sequence[DocInProgress]) -> Iterator[IngestionEvent]:
    """Embed and write a group of chunked documents, then yield their results and failures."""
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
    """Embed the texts of all documents of a group in one call.

    If the texts cannot be embedded, embed each document on its own, so that only the documents with
    such texts fail.

    Raises:
        EmbeddingServiceError: The service does not answer. Other documents would fail too.
    """
    try:
        embed_docs(run, group)
    except (ConfigurationError, EmbeddingServiceError):
        raise
    except Exception as error:  # noqa: BLE001  # a single bad document must not fail the group
        for work in group:
            if len(group) == 1:
                work.failure = _describe_failure(work.doc.doc_id, Stage.EMBEDDINGS, error)
                return
            with _keep_failure(work, Stage.EMBEDDINGS):
                embed_docs(run, [work])


def _write_group(run: IngestionRun, group: Sequence[DocInProgress]) -> None:
    """Write the points of a group, then read them back and check them."""
    if not group:
        return
    try:
        opened = run.hold_store()
    except RagPipelineError as error:
        for work in group:
            work.failure = _describe_failure(work.doc.doc_id, Stage.POINTS, error)
        return
    with opened as store:
        for work in group:
            with _keep_failure(work, Stage.POINTS):
                write_points(run, work, store)
        check_points(run, _without_failures(group), store)


def _delete_docs(run: IngestionRun, doc_ids: Sequence[DocId]) -> Iterator[DocDeleted | DocFailure]:
    try:
        opened = run.hold_store()
    except RagPipelineError as error:
        for doc_id in doc_ids:
            yield _describe_failure(doc_id, Stage.POINTS, error)
        return
    with opened as store:
        for doc_id in doc_ids:
            yield delete_doc(run, doc_id, store)


def _without_failures(group: Iterable[DocInProgress]) -> list[DocInProgress]:
    return [work for work in group if work.failure is None]


@contextmanager
def _keep_failure(work: DocInProgress, stage: Stage) -> Iterator[None]:
    """Store an exception of the `with` block as the document's failure instead of raising it.

    An error of the configuration or of the embedding service concerns all documents, so it is
    raised.
    """
    try:
        yield
    except (ConfigurationError, EmbeddingServiceError):
        raise
    except Exception as error:  # noqa: BLE001  # no content of a page may stop the run
        work.failure = _describe_failure(work.doc.doc_id, stage, error)


def _describe_failure(doc_id: DocId, stage: Stage, error: Exception) -> DocFailure:
    """Return the record of an error that stopped a document in a stage."""
    message, name = str(error), type(error).__name__
    if not isinstance(error, (RagPipelineError, OSError)):
        hint = "Please report this error together with the file"
        message = f"{doc_id}: unexpected {describe_kind(error)} in {stage.value}: {message}. {hint}"
    return DocFailure(doc_id, stage.value, name, message)


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
