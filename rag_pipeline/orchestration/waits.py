"""Waits of the sensor between two runs of a request that failed."""

from datetime import UTC, datetime
from itertools import takewhile
from typing import Final

import dagster as dg

from rag_pipeline.core.models import DiscoveredDoc
from rag_pipeline.ingestion.planning import Scan, find_next_try, is_due

REQUEST_TAG: Final = "rag_pipeline/request"
"""Run tag: hash of the requested work, to count its failures."""

_COUNTED_RUNS: Final = 12  # at this many failures in a row the wait has its maximum


def choose_due(scan: Scan, now: datetime) -> list[DiscoveredDoc]:
    """Return the documents to process that need not wait after a failure."""
    failures = scan.failures
    return [doc for doc in scan.plan.process if is_due(failures.get(doc.doc_id), doc.sha256, now)]


def find_wait(
    instance: dg.DagsterInstance, job_name: str, digest: str, now: datetime
) -> str | None:
    """Return a sentence on why a request must wait, for the UI, or None if it may run now.

    A request waits after a failed run of the same request, such as a run that could not reach the
    store. The wait grows with the number of such failures in a row.

    Args:
        instance: The Dagster instance with the earlier runs.
        job_name: Name of the job of the request.
        digest: Hash of the request, which is the value of the tag REQUEST_TAG of its runs.
        now: The current time.
    """
    runs = dg.RunsFilter(job_name=job_name, tags={REQUEST_TAG: digest})
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
