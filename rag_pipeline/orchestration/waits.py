"""Waits of the sensor after a document or a run has failed."""

from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Final

import dagster as dg

from rag_pipeline.core.models import DiscoveredDoc
from rag_pipeline.core.protocols.state import LedgerFailure
from rag_pipeline.ingestion.planning import Scan, fails_itself

REQUEST_TAG: Final = "rag_pipeline/request"
"""Run tag: hash of the requested work, to count its failures."""

_FIRST_RETRY: Final = timedelta(seconds=60)
_LONGEST_RETRY: Final = timedelta(hours=1)
_MOST_DOUBLINGS: Final = 10  # gives more than the longest wait, and keeps the number small
_COUNTED_RUNS: Final = 12  # at this many failures in a row the wait has its maximum


def choose_due(scan: Scan, now: datetime) -> list[DiscoveredDoc]:
    """Return the documents to process that need not wait after a failure."""
    failures = scan.failures
    return [
        doc
        for doc in scan.plan.process
        if not fails_itself(failures.get(doc.doc_id), doc)
        and is_due(failures.get(doc.doc_id), doc.sha256, now)
    ]


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
    failed = list(takewhile(_has_failed, records))
    if not failed:
        return None
    ended = datetime.fromtimestamp(failed[0].end_time or failed[0].start_time or 0.0, UTC)
    again = find_next_try(ended, len(failed), now)
    if again is None:
        return None
    run_id = failed[0].dagster_run.run_id[:8]
    return f"run {run_id} failed; the next try is at {again:%H:%M:%S} UTC"


def is_due(failure: LedgerFailure | None, sha256: str, now: datetime) -> bool:
    """Return True if a document may be tried again after its last failure.

    The wait after a failure starts at one minute and doubles up to one hour. A document without a
    failure is due, and so is a file whose content has changed since its failure.

    Args:
        failure: The ledger's record of the document's last failure; None if there is none.
        sha256: Hash of the file's current content.
        now: The current time.
    """
    if failure is None or failure.sha256 != sha256:
        return True
    failed_at = datetime.fromisoformat(failure.failed_at)
    return find_next_try(failed_at, failure.attempts, now) is None


def find_next_try(failed_at: datetime, attempts: int, now: datetime) -> datetime | None:
    """Return the time of the next try after `attempts` failures in a row; None if it has passed.

    None is also returned if `failed_at` lies in the future, which happens when the clock was set
    back. Otherwise the wait could be very long.
    """
    again = failed_at + compute_wait(attempts)
    return again if failed_at <= now < again else None


def compute_wait(attempts: int) -> timedelta:
    """Return the wait after `attempts` failures in a row: 1 min, doubled each time up to 1 h."""
    doublings = max(0, min(attempts - 1, _MOST_DOUBLINGS))
    return min(_FIRST_RETRY * (1 << doublings), _LONGEST_RETRY)


def _has_failed(record: dg.RunRecord) -> bool:
    """Return True if the Dagster run of a record has failed."""
    return record.dagster_run.status is dg.DagsterRunStatus.FAILURE
