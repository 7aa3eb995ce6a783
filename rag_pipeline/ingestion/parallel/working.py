"""A worker's part of an ingestion by several workers: index the documents of some buckets."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rag_pipeline.core.buckets import bucket_of, is_in
from rag_pipeline.core.errors import PlanOutdatedError
from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline.ingestion.disk_room import check_room
from rag_pipeline.ingestion.events import RunEnded, RunFailed, RunPlanned
from rag_pipeline.ingestion.finishing import refresh_ledger
from rag_pipeline.ingestion.parallel.planning import fingerprint_book, hash_documents
from rag_pipeline.ingestion.planning import scan_docs
from rag_pipeline.ingestion.processing import carry_out
from rag_pipeline.ingestion.stages import IngestionRun

if TYPE_CHECKING:
    from collections.abc import Generator

    from rag_pipeline.ingestion.context import IngestionContext
    from rag_pipeline.ingestion.events import IngestionEvent
    from rag_pipeline.ingestion.parallel.planning import BucketWork
    from rag_pipeline.ingestion.planning import Scan


def index_buckets(
    context: IngestionContext, work: BucketWork, run_id: str
) -> Generator[IngestionEvent]:
    """Process and delete documents of some buckets, and yield an event for each result.

    The worker compares its docs folder with the ledger again. It so skips what an earlier worker,
    which was killed, has indexed already. The failure of one document does not stop the run.

    Args:
        context: The settings and services.
        work: The buckets, and the state of the book that the coordinator planned them from.
        run_id: Id of the run, for the ledger and the report.

    Yields:
        The same events as `run_ingestion`. They concern only documents of the buckets.

    Raises:
        PlanOutdatedError: The worker's documents, settings or collection differ from the plan.
            Nothing was changed.
        StoreLockedError: Another worker holds one of the buckets, or an ingestion the whole book.
        EmbeddingServiceError: The service does not answer. The next run continues.
    """
    start, services = time.perf_counter(), context.services
    try:
        with services.lock_buckets(work.buckets):
            scan = scan_docs(
                context,
                is_wanted=lambda path: is_in(path, work.buckets, work.bucket_count),
                buckets=work.buckets,
            )
            _check_plan(context, work, scan)
            docs = scan.plan.process
            deletes = tuple(doc_id for doc_id in scan.plan.delete if doc_id in work.delete_ids)
            planned = RunPlanned(run_id, scan, tuple(doc.doc_id for doc in docs))
            check_room(context, planned)
            yield planned
            for failure in scan.discovery.failures:  # a folder is in exactly one bucket too
                if bucket_of(failure.doc_path, work.bucket_count) in work.buckets:
                    yield failure
            ledger = services.open_ledger(scan.collection_id)
            artifacts = services.open_artifacts(scan.collection_id)
            run = IngestionRun(context, IngestionRequest(), run_id, scan, ledger, artifacts)
            yield from carry_out(run, docs, deletes)
            refresh_ledger(ledger, planned.unchanged, scan.entries)
    except Exception as error:
        yield RunFailed(error)
        raise
    finally:
        services.cache.close()
    yield RunEnded(time.perf_counter() - start)


def _check_plan(context: IngestionContext, work: BucketWork, scan: Scan) -> None:
    """Check that the worker sees the book as the coordinator did.

    Raises:
        PlanOutdatedError: It does not.
    """
    if scan.collection_id != work.collection_id:
        problem = f"the collection is now {scan.collection_id or 'missing'}"
        raise PlanOutdatedError(f"{problem}, but the plan is for {work.collection_id}")
    if context.settings.bucket_count != work.bucket_count:
        problem = f"BUCKET_COUNT is {context.settings.bucket_count} here"
        raise PlanOutdatedError(f"{problem}, but the plan has {work.bucket_count} buckets")
    if fingerprint_book(context) != work.fingerprint:
        raise PlanOutdatedError(
            "the settings of this worker give other chunks or vectors than the coordinator's. Give "
            "both the same release and the same settings"
        )
    found = hash_documents(scan.discovery.docs)
    if found != work.snapshot:
        raise PlanOutdatedError(
            f"the docs folder {context.settings.docs_dir} of this worker has other documents than "
            f"the plan (snapshot {found} instead of {work.snapshot}). Give all workers the same "
            "checkout"
        )
