"""The docs-change sensor: what differs between the docs folder and what was really indexed becomes
one run.

Belongs here: when to ask for a run. Does not belong here: what changed (ingestion.changes).
"""

from collections.abc import Mapping
from datetime import UTC, datetime

import dagster as dg

from rag_pipeline.core.errors import RagPipelineError
from rag_pipeline.core.ids import DocId, parse_doc_id
from rag_pipeline.core.ports import LedgerFailure
from rag_pipeline.ingestion.changes import is_due
from rag_pipeline.ingestion.run import refresh_ledger, scan
from rag_pipeline.orchestration.jobs import INGEST_JOB
from rag_pipeline.orchestration.partitions import DOC_PARTITIONS, to_partition_key
from rag_pipeline.orchestration.resources import IngestionResource

DOCS_TAG = "rag_pipeline/docs"  # on every run of the sensor: how many documents it takes

_IN_FLIGHT = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_NAMED_FAILURES = 5


@dg.sensor(
    name="docs_changes",
    job=INGEST_JOB,
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Index what was added, changed, moved or removed in the docs folder, as one run.",
)
def docs_changes(
    context: dg.SensorEvaluationContext, ingestion: dg.ResourceParam[IngestionResource]
) -> dg.SensorResult | dg.SkipReason:
    """Compare the docs folder with the ledger; ask for one run of all that differs.

    No cursor: a document counts as done only when the ledger says that its points are in, so that
    what failed is asked
    for again, later and later while its content stays the same.
    """
    environment = ingestion.environment
    try:
        discovery, plan, entries = scan(environment)
    except RagPipelineError as error:
        return dg.SkipReason(str(error))
    running = _find_run_in_flight(context.instance)
    if running is not None:
        return dg.SkipReason(f"run {running} is in flight; what it leaves is looked at after it")
    collection_id = environment.catalog.current_id()
    ledger = environment.open_ledger(collection_id) if collection_id else None
    failures = ledger.failures() if ledger else {}
    now = datetime.now(UTC)
    due = [doc for doc in plan.process if is_due(failures.get(doc.doc_id), doc.sha256, now)]
    waiting = len(plan.process) - len(due)
    if not due and not plan.delete:
        if ledger is not None:
            refresh_ledger(ledger, plan.unchanged, entries)
        return dg.SkipReason(_describe_rest(len(plan.unchanged), waiting, failures))
    doc_ids = [str(doc.doc_id) for doc in due]
    keys = [to_partition_key(parse_doc_id(doc_id)) for doc_id in doc_ids]
    config = {"doc_ids": doc_ids, "delete_ids": [str(doc_id) for doc_id in plan.delete]}
    for failure in discovery.failures:
        context.log.warning(failure.message)
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(
                run_config={"ops": {"ingestion": {"config": config}}},
                tags={DOCS_TAG: f"{len(due)} to index, {len(plan.delete)} to remove"},
            )
        ],
        dynamic_partitions_requests=[DOC_PARTITIONS.build_add_request(keys)] if keys else [],
    )


def _find_run_in_flight(instance: dg.DagsterInstance) -> str | None:
    records = instance.get_run_records(
        dg.RunsFilter(job_name=INGEST_JOB.name, statuses=_IN_FLIGHT), limit=1
    )
    return records[0].dagster_run.run_id[:8] if records else None


def _describe_rest(unchanged: int, waiting: int, failures: Mapping[DocId, LedgerFailure]) -> str:
    reason = f"{unchanged} documents are indexed as they are"
    if waiting:
        names = sorted(failures)[:_NAMED_FAILURES]
        more = ", ..." if len(failures) > _NAMED_FAILURES else ""
        reason += f"; {waiting} failed and wait for their next try: {', '.join(names)}{more}"
    return reason
