"""The Dagster jobs, their schedules, and the sensor `docs_changes`.

The sensor starts ingestion runs when the docs folder has changed.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Any, Final

import dagster as dg

from rag_pipeline.core.errors import RagPipelineError
from rag_pipeline.core.ids import hash_text
from rag_pipeline.core.models import DiscoveredDoc, Stage
from rag_pipeline.core.protocols import LedgerFailure
from rag_pipeline.ingestion.planning import (
    Scan,
    fails_itself,
    hash_plan,
    leave_moved,
    refresh_ledger_if_idle,
    scan_docs,
)
from rag_pipeline.ingestion.site.detection import name_some
from rag_pipeline.orchestration.checks import reconcile, store_matches_ledger
from rag_pipeline.orchestration.dead_runs import IN_FLIGHT, end_dead_runs
from rag_pipeline.orchestration.partitions import BOOK_INDEX
from rag_pipeline.orchestration.resources import Ingestion

INGEST_JOB: Final = dg.define_asset_job(
    "ingest",
    selection=dg.AssetSelection.assets(BOOK_INDEX).without_checks(),
    description=(
        "Index the documents that the run config names. By default, index everything in the docs "
        "folder that changed since the last run."
    ),
)
"""The ingestion job, which the command line, the sensor, the schedule and the UI start."""

EVALUATE_JOB: Final = dg.define_asset_job(
    "evaluate",
    selection=dg.AssetSelection.groups("evaluation"),
    description="Measure retrieval with the golden set. The asset checks are the quality gates.",
)

AUDIT_JOB: Final = dg.define_asset_job(
    "audit",
    selection=dg.AssetSelection.checks(store_matches_ledger),
    description="Check that the store contains exactly what was indexed. Writes nothing.",
)

FEEDBACK_JOB: Final = dg.define_asset_job(
    "feedback",
    selection=dg.AssetSelection.groups("feedback"),
    description="Report the ratings and the unanswered questions of the question log.",
)

NIGHTLY_RECONCILIATION: Final = dg.ScheduleDefinition(
    name="nightly_reconciliation",
    job=INGEST_JOB,
    cron_schedule="0 3 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    run_config={"ops": {"ingestion": {"config": {"reread": True}}}},
    description=(
        "Read every document again, even if the size and time of its file are unchanged, and index "
        "the documents whose content changed."
    ),
)

NIGHTLY_AUDIT: Final = dg.ScheduleDefinition(
    name="nightly_audit",
    job=AUDIT_JOB,
    # A schedule starts only one job. The run queue delays the audit until the ingestion has ended.
    cron_schedule="30 3 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Check after the reconciliation that the store contains exactly what was indexed.",
)

DAILY_FEEDBACK: Final = dg.ScheduleDefinition(
    name="daily_feedback",
    job=FEEDBACK_JOB,
    cron_schedule="0 5 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Report each day what readers think of the answers and what was not answered.",
)

DAILY_EVALUATION: Final = dg.AutomationConditionSensorDefinition(
    name="daily_evaluation",
    target=dg.AssetSelection.groups("evaluation"),
    default_status=dg.DefaultSensorStatus.STOPPED,
    minimum_interval_seconds=300,
    description=(
        "Measure search and answers at 4:00 if the index changed since the last evaluation. It is "
        "off, because questions to an embedding or answer service cost money."
    ),
)


REQUEST_TAG: Final = "rag_pipeline/request"
"""Run tag: hash of the requested work, to count its failures."""

_COUNTED_RUNS: Final = 12  # at this many failures in a row the wait has its maximum

DOCS_TAG = "rag_pipeline/docs"
"""Run tag: how many documents the run indexes and removes."""


def build_docs_sensor(interval_s: int) -> dg.SensorDefinition:
    """Return the sensor `docs_changes`, which compares the docs folder every `interval_s` s."""
    return dg.sensor(
        name="docs_changes",
        job=INGEST_JOB,
        minimum_interval_seconds=interval_s,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            "Start ingestion runs when documents are added, changed, moved or deleted, and correct "
            "partitions that a killed run left behind."
        ),
    )(_find_changes)


def _find_changes(
    context: dg.SensorEvaluationContext, ingestion: dg.ResourceParam[Ingestion]
) -> dg.SensorResult | dg.SkipReason:
    """Compare the docs folder with the ledger, and request runs for the differences.

    The ledger records which documents are indexed. A change of more than INGEST_RUN_DOCS documents
    is divided into several runs, which Dagster's run queue and launcher distribute. A document that
    failed because of its content is not requested again before its file changes. After a failure
    of a service, it is requested after a wait that grows with each failure.

    The cursor is a hash of the ledger and of the last run, for which the partitions are correct.
    """
    try:
        end_dead_runs(context.instance, ingestion.context.services.run_locks)
        # Listed before the scan: what a run does that ends during it may be missing in the scan.
        runs = list_in_flight(context.instance)
        scan = scan_docs(ingestion.context)
    except RagPipelineError as error:
        return dg.SkipReason(str(error))
    cursor = context.cursor
    if not runs:
        last = [(run.run_id, run.status) for run in context.instance.get_runs(limit=1)]
        entries = sorted((str(key), entry.version) for key, entry in scan.entries.items())
        failures = sorted((str(key), one.failed_at) for key, one in scan.failures.items())
        state = (scan.collection_id, entries, failures, last)
        cursor = hash_text(repr(state))[:16]
        if cursor != context.cursor:
            reconcile(context.instance, ingestion.context, scan)
    found = _request_runs(context, ingestion, scan, runs)
    if isinstance(found, str):
        return dg.SensorResult(skip_reason=found, cursor=cursor)
    return dg.SensorResult(run_requests=found, cursor=cursor)


def _request_runs(
    context: dg.SensorEvaluationContext,
    ingestion: Ingestion,
    scan: Scan,
    runs: Sequence[dg.DagsterRun],
) -> list[dg.RunRequest] | str:
    """Return the runs for the differences of a scan that no run covers, or why there are none."""
    covered = set[str]()
    for run in runs:
        doc_ids = _read_config(run).get("doc_ids")
        if doc_ids is None:
            name = run.run_id[:8]
            return f"run {name} is in progress; the docs folder is checked after it"
        covered.update(doc_ids, _read_config(run).get("delete_ids", ()))
    now, book = datetime.now(UTC), ingestion.context
    due = [
        doc
        for doc in scan.process
        if doc.doc_id not in covered and is_due(scan.failures.get(doc.doc_id), doc, now)
    ]
    due_ids = {doc.doc_id for doc in due}
    postponed = [doc for doc in scan.process if doc.doc_id not in due_ids]
    gone = [it for it in leave_moved(scan.delete, scan.entries, postponed) if it not in covered]
    for failure in scan.discovery.failures:
        context.log.warning(failure.message)
    if not due and not gone:
        if runs:
            return f"{len(runs)} runs index {len(covered)} documents"
        if scan.collection_id:
            refresh_ledger_if_idle(book, scan)
        reason = f"{len(scan.unchanged)} documents are up to date"
        unread = [failure.doc_path for failure in scan.discovery.failures]
        failed = [str(doc.doc_id) for doc in postponed]
        for problem, names in (("failed", failed), ("cannot be read", unread)):
            reason += f"; {len(names)} {problem}: {name_some(names)}" if names else ""
        return reason
    size = book.settings.ingest_run_docs
    pages = [due[start : start + size] for start in range(0, len(due), size)] or [[]]
    # Old paths are deleted with the last page, when most of the new ones are indexed.
    requests = [
        _make_request(ingestion, scan, page, gone if page is pages[-1] else ()) for page in pages
    ]
    waits = [find_wait(context.instance, it.tags[REQUEST_TAG], now) for it in requests]
    ready = [it for it, wait in zip(requests, waits, strict=True) if wait is None]
    return ready or next(wait for wait in waits if wait)


def _make_request(
    ingestion: Ingestion, scan: Scan, docs: Sequence[DiscoveredDoc], gone: Sequence[str]
) -> dg.RunRequest:
    book = ingestion.context
    doc_ids, delete_ids = [str(doc.doc_id) for doc in docs], [str(doc_id) for doc_id in gone]
    config: dict[str, object] = {"doc_ids": doc_ids, "delete_ids": delete_ids}
    if book.settings.database_url and scan.collection_id:
        config["plan"] = hash_plan(book, scan.collection_id, docs)
    content = [[(doc.doc_id, doc.sha256, book.fingerprint_of(doc.doc_id)) for doc in docs]]
    digest = hash_text(json.dumps([content, delete_ids]))[:16]
    return dg.RunRequest(
        job_name=INGEST_JOB.name,
        run_config={"ops": {"ingestion": {"config": config}}},
        tags={DOCS_TAG: f"{len(docs)} to index, {len(gone)} to remove", REQUEST_TAG: digest},
    )


def list_in_flight(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    """Return the unfinished runs that index documents, started by anybody."""
    runs = instance.get_runs(dg.RunsFilter(statuses=list(IN_FLIGHT)))
    keys = {dg.AssetKey(name) for name in (*Stage, BOOK_INDEX)}
    return [
        run
        for run in runs
        if run.job_name == INGEST_JOB.name or not keys.isdisjoint(run.asset_selection or ())
    ]


def _read_config(run: dg.DagsterRun) -> dict[str, Any]:
    config: Any = run.run_config
    return dict(config.get("ops", {}).get("ingestion", {}).get("config", {}))


def find_wait(instance: dg.DagsterInstance, digest: str, now: datetime) -> str | None:
    """Return a sentence on why a request must wait, for the UI, or None if it may run now.

    A request waits after a failed run of the same request, such as a run that could not reach the
    store. The wait grows with the number of such failures in a row.

    Args:
        instance: The Dagster instance with the earlier runs.
        digest: Hash of the request, which is the value of the tag REQUEST_TAG of its runs.
        now: The current time.
    """
    runs = dg.RunsFilter(tags={REQUEST_TAG: digest})
    records = instance.get_run_records(runs, limit=_COUNTED_RUNS)
    failure = dg.DagsterRunStatus.FAILURE
    failed = list(takewhile(lambda one: one.dagster_run.status is failure, records))
    if not failed:
        return None
    ended = datetime.fromtimestamp(failed[0].end_time or failed[0].start_time or 0.0, UTC)
    again = find_next_try(ended, len(failed), now)
    if again is None:
        return None
    run_id = failed[0].dagster_run.run_id[:8]
    return f"run {run_id} failed; the next try is at {again:%H:%M:%S} UTC"


def is_due(failure: LedgerFailure | None, doc: DiscoveredDoc, now: datetime) -> bool:
    """Return True if a document may be tried again after its last failure.

    The wait after a failure of a service starts at one minute and doubles up to one hour. A
    document that failed because of its content waits until its file changes.

    Args:
        failure: The ledger's record of the document's last failure; None if there is none.
        doc: The file as it is now.
        now: The current time.
    """
    if failure is None or failure.sha256 != doc.sha256:
        return True
    if fails_itself(failure, doc):
        return False
    failed_at = datetime.fromisoformat(failure.failed_at)
    return find_next_try(failed_at, failure.attempts, now) is None


def find_next_try(failed_at: datetime, attempts: int, now: datetime) -> datetime | None:
    """Return the time of the next try after `attempts` failures in a row; None if it has passed.

    The wait is 1 minute, doubled with each failure up to 1 hour. None is also returned if
    `failed_at` lies in the future, which happens when the clock was set back. Otherwise the wait
    could be very long.
    """
    wait_s = min(60 * 2 ** min(attempts - 1, 6), 3600)  # 64 minutes are more than the longest wait
    again = failed_at + timedelta(seconds=wait_s)
    return again if failed_at <= now < again else None
