"""The life of Dagster runs: tags, and detection of runs whose process was killed."""

import os
import socket
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import dagster as dg

from rag_pipeline.core.errors import DatabaseUnavailableError
from rag_pipeline.core.protocols import RunLock, RunLocks

LOCATION: Final = "rag_pipeline"
"""Name of the code location, as in workspace.yaml and pyproject.toml."""

PROCESS_TAG: Final = "rag_pipeline/process"
"""Run tag: host and process id of the process that executes the run."""

LOCK_TAG: Final = "rag_pipeline/lock"
"""Run tag: the lock that the run holds, if DATABASE_URL is set."""

_held: dict[str, RunLock] = {}
"""The locks that this process holds, by run id."""


def name_process() -> str:
    """Return the host name and the process id of this process, as the tag PROCESS_TAG has them."""
    return f"{socket.gethostname()}:{os.getpid()}"


def name_lock(run_id: str, locks: RunLocks) -> str:
    """Return the value of the tag LOCK_TAG of a run.

    It names the run, because a repeated run has the tags of the first one until it begins. It names
    the book too, because a Dagster instance can have runs of books with another DATABASE_URL.
    """
    return f"{locks.state_name}/{run_id}"


@contextmanager
def hold_run(run_id: str, locks: RunLocks | None) -> Iterator[dict[str, str]]:
    """Hold the lock of a run during the `with` block, and yield the tags of the run."""
    tags = {PROCESS_TAG: name_process()}
    if locks is None:
        yield tags
        return
    _held[run_id] = locks.hold(run_id)
    try:
        yield tags | {LOCK_TAG: name_lock(run_id, locks)}
    finally:
        _held.pop(run_id).release()


def begin_run(instance: dg.DagsterInstance, run_id: str, locks: RunLocks | None) -> None:
    """Take the lock of a run that Dagster has started, and then tag the run.

    The lock is held until the process ends, or until its next run begins. If it ended with the last
    step, the run would look dead until Dagster has recorded its success.
    """
    tags = {PROCESS_TAG: name_process()}
    if locks is not None:
        if run_id not in _held:
            for ended in [other for other in _held if _has_ended(instance, other)]:
                _held.pop(ended).release()
            _held[run_id] = locks.hold(run_id)
        tags[LOCK_TAG] = name_lock(run_id, locks)
    instance.add_run_tags(run_id, tags)


def check_run(run_id: str) -> None:
    """Check that the lock of the run was held without a break.

    Raises:
        DatabaseUnavailableError: The lock was lost. The run must end.
    """
    lock = _held.get(run_id)
    if lock is not None:
        lock.check()


def _has_ended(instance: dg.DagsterInstance, run_id: str) -> bool:
    """Return True if Dagster has recorded the end of the run, or does not know the run."""
    run = instance.get_run_by_id(run_id)
    return run is None or run.is_finished


IN_FLIGHT: Final = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)
"""The states of a run that has not ended."""

# A repeated run has the tags of the first one, so also the name of its process, until it begins.
_NOT_BEGUN: Final = frozenset({dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.STARTING})

# Between its start and its lock, a run only loads its code, which takes seconds. The start is read
# from the clock of another machine, which may differ by minutes.
_LONGEST_BEGINNING_S: Final = 600.0

# A living run whose connection to the database is cut takes its lock again after about a second.
_CONFIRMING_S: Final = 10.0
_LOOK_S: Final = 0.5


def end_dead_runs(instance: dg.DagsterInstance, locks: RunLocks | None = None) -> None:
    """Mark unfinished runs of this code location as failed if their process no longer exists.

    It does not matter who started a run: a command, the sensor, or the UI. Each run tags itself
    with its process when its first step begins. Dagster itself does not notice the end of a run
    that a command executes, or whose Dagster server was killed too. Until the maximum run time was
    over, such a run would count as in progress, and no other ingestion would be started. A run that
    waits or is being started is left to Dagster.

    With `locks`, a run of any machine is dead if no process holds its lock. If such a run is found,
    the call takes 10 s, to see whether the run only takes its lock again. Without `locks`, only
    processes of this machine are noticed.

    Args:
        instance: The Dagster instance.
        locks: The locks of the runs of the book; None if the ledger is in files.
    """
    begun = [status for status in IN_FLIGHT if status not in _NOT_BEGUN]
    records = instance.get_run_records(dg.RunsFilter(statuses=begun))
    found = [record for record in records if _is_ours(record.dagster_run)]
    for record in found:
        if _has_no_process(record.dagster_run, locks) and not _is_beginning(instance, record):
            reason = "the process that executed this run was killed"
            instance.report_run_failed(record.dagster_run, reason)
        elif locks is not None and _did_not_begin(record, locks):
            reason = f"this run was started, but did not begin in {_LONGEST_BEGINNING_S:g} s"
            instance.report_run_failed(record.dagster_run, reason)
    if locks is None:
        return
    runs = [record.dagster_run for record in found]
    for run_id in _find_without_holder(_select_own(runs, locks), locks):
        run = instance.get_run_by_id(run_id)  # it may have ended meanwhile
        if run is not None and not run.is_finished:
            reason = "no process holds its lock: its process, machine or network ended"
            instance.report_run_failed(run, reason)


def _is_ours(run: dg.DagsterRun) -> bool:
    """Return True if a run was executed or requested by this code location."""
    return PROCESS_TAG in run.tags or run.tags.get("dagster/code_location") == LOCATION


def _has_no_process(run: dg.DagsterRun, locks: RunLocks | None) -> bool:
    """Return True if the run names a process of this machine that does not exist.

    With `locks`, this decides only about runs without a lock, such as those of an older release.
    """
    if locks is not None and LOCK_TAG in run.tags:
        return False
    host, _, pid = run.tags.get(PROCESS_TAG, "").rpartition(":")
    return host == socket.gethostname() and not _is_alive(int(pid))


def _is_beginning(instance: dg.DagsterInstance, record: dg.RunRecord) -> bool:
    """Return True if a repeated run still has the tag of the first run's process.

    It gets its own tag in its first step, soon after it has started.
    """
    run = record.dagster_run
    first = instance.get_run_by_id(run.parent_run_id) if run.parent_run_id else None
    if first is None or first.tags.get(PROCESS_TAG) != run.tags[PROCESS_TAG]:
        return False
    return _measure_age(record) <= _LONGEST_BEGINNING_S


def _measure_age(record: dg.RunRecord) -> float:
    """Return the seconds since a run was started, or else since it was created."""
    return time.time() - (record.start_time or record.create_timestamp.timestamp())


def _did_not_begin(record: dg.RunRecord, locks: RunLocks) -> bool:
    """Return True if a run has waited too long for its first step, which takes the lock."""
    run = record.dagster_run
    book, _, run_id = run.tags.get(LOCK_TAG, "").rpartition("/")
    if run_id == run.run_id or book not in {"", locks.state_name}:
        return False
    if not book and PROCESS_TAG in run.tags:
        return False  # it has begun, in a process without DATABASE_URL
    return _measure_age(record) > _LONGEST_BEGINNING_S


def _select_own(runs: Sequence[dg.DagsterRun], locks: RunLocks) -> set[str]:
    """Return the ids of the runs that have taken their own lock, which is one of this book."""
    return {run.run_id for run in runs if run.tags.get(LOCK_TAG) == name_lock(run.run_id, locks)}


def _find_without_holder(run_ids: Collection[str], locks: RunLocks) -> set[str]:
    """Return the runs whose lock nobody has held for a while.

    If the database does not answer, no run is returned; the next call decides.
    """
    left = set(run_ids)
    deadline = time.monotonic() + _CONFIRMING_S
    try:
        while left:
            left -= locks.find_held(left)
            if time.monotonic() >= deadline:
                break
            if left:
                time.sleep(_LOOK_S)
    except DatabaseUnavailableError:
        return set()
    return left


def _is_alive(pid: int) -> bool:
    """Return True if a process with this id exists on this machine, owned by any user."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
