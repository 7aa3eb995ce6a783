"""Process the documents of a run in groups, and delete documents whose files are gone."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import (
    ConfigurationError,
    EmbeddingServiceError,
    RagPipelineError,
    StoreError,
    StoreLockedError,
    StoreNotWritableError,
    StoreUnavailableError,
    describe_kind,
)
from rag_pipeline.core.models import DocFailure, Stage
from rag_pipeline.core.protocols import LedgerFailure
from rag_pipeline.ingestion.context import now_utc
from rag_pipeline.ingestion.embedding import PART_CHUNKS, embed_docs
from rag_pipeline.ingestion.planning import leave_moved, plan_ingestion
from rag_pipeline.ingestion.stages import DocInProgress, prepare_doc
from rag_pipeline.ingestion.writing import check_points, delete_doc, record_points, write_points

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.models import DiscoveredDoc
    from rag_pipeline.core.protocols import PointStore
    from rag_pipeline.ingestion.context import IngestionContext
    from rag_pipeline.ingestion.events import DocDeleted, IngestionEvent, StageDone
    from rag_pipeline.ingestion.planning import Scan
    from rag_pipeline.ingestion.stages import IngestionRun


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


def _finish_group(run: IngestionRun, group: Sequence[DocInProgress]) -> Iterator[IngestionEvent]:
    """Embed and write a group of chunked documents, then yield their results and failures."""
    _embed_group(run, _without_failures(group))
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
    except _CONCERNS_ALL:
        raise
    except Exception as error:  # noqa: BLE001  # a single bad document must not fail the group
        for work in group:
            if len(group) == 1:
                work.failure = _describe_failure(work.doc.doc_id, Stage.EMBEDDINGS, error)
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
            work.failure = _describe_failure(work.doc.doc_id, Stage.POINTS, error)
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
            work.failure = _describe_failure(work.doc.doc_id, Stage.POINTS, error)
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

    An error that concerns all documents is raised.
    """
    try:
        yield
    except _CONCERNS_ALL:
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
