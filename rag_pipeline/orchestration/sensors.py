"""The sensor `docs_changes`, which starts an ingestion run when the docs folder has changed."""

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import takewhile

import dagster as dg

from rag_pipeline.core.errors import RagPipelineError
from rag_pipeline.core.models import DiscoveredDoc
from rag_pipeline.ingestion.finishing import refresh_ledger_if_idle
from rag_pipeline.ingestion.planning import find_next_try, is_due, leave_moved, scan_docs
from rag_pipeline.orchestration.dead_runs import IN_FLIGHT, end_dead_runs
from rag_pipeline.orchestration.jobs import INGEST_JOB
from rag_pipeline.orchestration.partitions import DOC_PARTITIONS, to_partition_key
from rag_pipeline.orchestration.resources import IngestionResource

DOCS_TAG = "rag_pipeline/docs"  # run tag: how many documents the run indexes and removes
_REQUEST_TAG = "rag_pipeline/request"  # run tag: hash of the requested work, to count its failures

_NAMED = 5  # most documents named in a skip reason
_COUNTED_RUNS = 12  # at this many failures in a row the wait has its maximum


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
    """Compare the docs folder with the ledger, and request one run for the differences.

    The ledger records which documents are indexed, so the sensor needs no cursor of its own. One
    run indexes at most INGEST_RUN_DOCS documents; the next tick requests the rest. A failed
    document is requested again after a wait, which grows with each failure of the same content.
    """
    try:
        scan = scan_docs(ingestion.context)
    except RagPipelineError as error:
        return dg.SkipReason(str(error))
    end_dead_runs(context.instance)
    running = _find_run_in_flight(context.instance)
    if running is not None:
        return dg.SkipReason(f"run {running} is in progress; the docs folder is checked after it")
    plan, now = scan.plan, datetime.now(UTC)
    due = [doc for doc in plan.process if is_due(scan.failures.get(doc.doc_id), doc.sha256, now)]
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
    wait = _find_wait(context.instance, digest, now)
    if wait is not None:
        return dg.SkipReason(wait)
    config = {"doc_ids": doc_ids, "delete_ids": [str(doc_id) for doc_id in gone]}
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(
                run_config={"ops": {"ingestion": {"config": config}}},
                tags={
                    DOCS_TAG: f"{len(due)} to index, {len(gone)} to remove",
                    _REQUEST_TAG: digest,
                },
            )
        ],
        dynamic_partitions_requests=[DOC_PARTITIONS.build_add_request(keys)] if keys else [],
    )


def _find_run_in_flight(instance: dg.DagsterInstance) -> str | None:
    """Return the first 8 characters of the id of an unfinished ingestion run, or None."""
    records = instance.get_run_records(
        dg.RunsFilter(job_name=INGEST_JOB.name, statuses=list(IN_FLIGHT)), limit=1
    )
    return records[0].dagster_run.run_id[:8] if records else None


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


def _find_wait(instance: dg.DagsterInstance, digest: str, now: datetime) -> str | None:
    """Return a sentence on why a request must wait, for the UI, or None if it may run now.

    A request waits after a failed run of the same request, such as a run that could not reach the
    store. The wait grows with the number of such failures in a row.

    Args:
        instance: The Dagster instance with the earlier runs.
        digest: Hash of the request, which `_digest_request` returned.
        now: The current time.
    """
    runs = dg.RunsFilter(job_name=INGEST_JOB.name, tags={_REQUEST_TAG: digest})
    records = instance.get_run_records(runs, limit=_COUNTED_RUNS)
    failed = list(takewhile(_has_failed, records))
    if not failed:
        return None
    ended = datetime.fromtimestamp(failed[0].end_time or failed[0].start_time or 0.0, UTC)
    again = find_next_try(ended, len(failed), now)
    if again is None:
        return None
    run_id = failed[0].dagster_run.run_id[:8]
    return f"run {run_id} failed; the next try is at {again:%H:%M:%S} UTC"


def _has_failed(record: dg.RunRecord) -> bool:
    """Return True if the Dagster run of a record has failed."""
    return record.dagster_run.status is dg.DagsterRunStatus.FAILURE


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
