"""The sensor `docs_changes`, which starts an ingestion run when the docs folder has changed."""

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime

import dagster as dg

from rag_pipeline.core.errors import RagPipelineError
from rag_pipeline.core.models import DiscoveredDoc
from rag_pipeline.ingestion.finishing import refresh_ledger_if_idle
from rag_pipeline.ingestion.planning import Scan, leave_moved, scan_docs
from rag_pipeline.orchestration.dead_runs import IN_FLIGHT, end_dead_runs
from rag_pipeline.orchestration.jobs import INGEST_JOB
from rag_pipeline.orchestration.partitions import DOC_PARTITIONS, to_partition_key
from rag_pipeline.orchestration.resources import IngestionResource
from rag_pipeline.orchestration.waits import REQUEST_TAG, choose_due, find_wait

DOCS_TAG = "rag_pipeline/docs"  # run tag: how many documents the run indexes and removes

_NAMED = 5  # most documents named in a skip reason


@dg.sensor(
    name="docs_changes",
    job=INGEST_JOB,
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Start one ingestion run when documents are added, changed, moved or deleted.",
)
def docs_changes(
    context: dg.SensorEvaluationContext, ingestion: dg.ResourceParam[IngestionResource]
) -> dg.SensorResult | dg.SkipReason:
    """Compare the docs folder with the ledger, and request runs for the differences.

    The ledger records which documents are indexed, so the sensor needs no cursor of its own. It
    requests one run of at most INGEST_RUN_DOCS documents, and the next tick requests the rest. A
    failed document is requested again after a wait, which grows with each failure of the same
    content.
    """
    try:
        end_dead_runs(context.instance, ingestion.context.services.run_locks)
        # Listed before the scan: what a run does that ends during it may be missing in the scan.
        runs = _list_in_flight(context.instance)
        scan = scan_docs(ingestion.context)
    except RagPipelineError as error:
        return dg.SkipReason(str(error))
    return _request_runs(context, ingestion, scan, runs)


def _request_runs(
    context: dg.SensorEvaluationContext,
    ingestion: IngestionResource,
    scan: Scan,
    runs: Sequence[dg.DagsterRun],
) -> dg.SensorResult | dg.SkipReason:
    """Request a run for the differences that a scan has found, unless a run is in progress."""
    if runs:
        name = runs[0].run_id[:8]
        return dg.SkipReason(f"run {name} is in progress; the docs folder is checked after it")
    plan, now = scan.plan, datetime.now(UTC)
    due = choose_due(scan, now)
    due_ids = {doc.doc_id for doc in due}
    waiting = [str(doc.doc_id) for doc in plan.process if doc.doc_id not in due_ids]
    due = due[: ingestion.context.settings.ingest_run_docs]  # a later tick requests the rest
    doc_ids = [str(doc.doc_id) for doc in due]
    requested = set(doc_ids)
    postponed = [doc for doc in plan.process if doc.doc_id not in requested]
    gone = leave_moved(plan.delete, scan.entries, postponed)
    for failure in scan.discovery.failures:
        context.log.warning(failure.message)
    if not due and not gone:
        if scan.collection_id:
            refresh_ledger_if_idle(ingestion.context, scan)
        unread = [failure.doc_path for failure in scan.discovery.failures]
        return dg.SkipReason(_describe_rest(len(plan.unchanged), waiting, unread))
    keys = [to_partition_key(doc.doc_id) for doc in due]
    fingerprints = {ingestion.context.fingerprint_of(doc.doc_id) for doc in due}
    digest = _digest_request(due, gone, sorted(fingerprints))
    wait = find_wait(context.instance, INGEST_JOB.name, digest, now)
    if wait is not None:
        return dg.SkipReason(wait)
    config = {"doc_ids": doc_ids, "delete_ids": [str(doc_id) for doc_id in gone]}
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(
                job_name=INGEST_JOB.name,
                run_config={"ops": {"ingestion": {"config": config}}},
                tags={
                    DOCS_TAG: f"{len(due)} to index, {len(gone)} to remove",
                    REQUEST_TAG: digest,
                },
            )
        ],
        dynamic_partitions_requests=[DOC_PARTITIONS.build_add_request(keys)] if keys else [],
    )


def _list_in_flight(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    """Return the unfinished ingestion runs."""
    runs = instance.get_runs(dg.RunsFilter(statuses=list(IN_FLIGHT)))
    return [run for run in runs if run.job_name == INGEST_JOB.name]


def _digest_request(
    docs: Sequence[DiscoveredDoc], gone: Sequence[str], fingerprints: Sequence[str]
) -> str:
    """Return 16 hex digits that identify a run request by its documents, content and settings.

    Args:
        docs: Documents to index.
        gone: Ids of documents to remove.
        fingerprints: Fingerprints of the settings and model that the index is built with.
    """
    content = [[(doc.doc_id, doc.sha256) for doc in docs], list(gone), list(fingerprints)]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def _describe_rest(unchanged: int, waiting: Sequence[str], unread: Sequence[str]) -> str:
    """Describe why the sensor has nothing to do, for the UI.

    Args:
        unchanged: Number of documents that are indexed and unchanged.
        waiting: Failed documents that are tried again later.
        unread: Documents that cannot be read.
    """
    reason = f"{unchanged} documents are up to date"
    if waiting:
        reason += f"; {len(waiting)} failed and will be tried again: {_name_some(waiting)}"
    if unread:
        reason += f"; {len(unread)} cannot be read: {_name_some(unread)}"
    return reason


def _name_some(names: Sequence[str]) -> str:
    """Join the first 5 names with commas, and add `...` if there are more."""
    return ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
