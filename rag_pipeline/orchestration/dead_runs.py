"""The life of Dagster runs: tags, and detection of runs whose process was killed."""

import os
import socket
import time
from collections.abc import Iterator
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
            for other in [*_held]:
                run = instance.get_run_by_id(other)
                if run is None or run.is_finished:
                    _held.pop(other).release()
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
    locked = set[str]()
    for record in instance.get_run_records(dg.RunsFilter(statuses=begun)):
        run = record.dagster_run
        if PROCESS_TAG not in run.tags and run.tags.get("dagster/code_location") != LOCATION:
            continue
        started = record.start_time or record.create_timestamp.timestamp()
        is_young = time.time() - started <= _LONGEST_BEGINNING_S
        if _has_no_process(run, locks) and not (is_young and _is_repeated(instance, run)):
            reason = "the process that executed this run was killed"
            instance.report_run_failed(run, reason)
        elif locks is not None and run.tags.get(LOCK_TAG) == name_lock(run.run_id, locks):
            locked.add(run.run_id)
        elif locks is not None and not is_young and _has_not_begun(run, locks):
            reason = f"this run was started, but did not begin in {_LONGEST_BEGINNING_S:g} s"
            instance.report_run_failed(run, reason)
    for run_id in _find_without_holder(locked, locks) if locks else ():
        run_now = instance.get_run_by_id(run_id)  # it may have ended meanwhile
        if run_now is not None and not run_now.is_finished:
            reason = "no process holds its lock: its process, machine or network ended"
            instance.report_run_failed(run_now, reason)


def _has_no_process(run: dg.DagsterRun, locks: RunLocks | None) -> bool:
    """Return True if the run names a process of this machine that does not exist.

    With `locks`, this decides only about runs without a lock, such as those of an older release.
    """
    host, _, pid = run.tags.get(PROCESS_TAG, "").rpartition(":")
    if host != socket.gethostname() or (locks is not None and LOCK_TAG in run.tags):
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # the process belongs to another user
        return False
    return False


def _is_repeated(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    """Return True if a repeated run still has the tag of the first run's process.

    It gets its own tag in its first step, soon after it has started.
    """
    first = instance.get_run_by_id(run.parent_run_id) if run.parent_run_id else None
    return first is not None and first.tags.get(PROCESS_TAG) == run.tags[PROCESS_TAG]


def _has_not_begun(run: dg.DagsterRun, locks: RunLocks) -> bool:
    """Return True if a run of the book has not had its first step, which takes the lock."""
    book, _, run_id = run.tags.get(LOCK_TAG, "").rpartition("/")
    if not book:  # a run with a process has begun, in a process without DATABASE_URL
        return PROCESS_TAG not in run.tags
    return book == locks.state_name and run_id != run.run_id


def _find_without_holder(run_ids: set[str], locks: RunLocks) -> set[str]:
    """Return the runs whose lock nobody has held for a while.

    If the database does not answer, no run is returned; the next call decides.
    """
    left = run_ids
    deadline = time.monotonic() + _CONFIRMING_S
    try:
        while left:
            left = left - locks.find_held(left)
            if time.monotonic() >= deadline:
                break
            if left:
                time.sleep(_LOOK_S)
    except DatabaseUnavailableError:
        return set()
    return left
