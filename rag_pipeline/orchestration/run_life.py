"""The life of an ingestion run: while its process works, it holds the lock of the run.

The lock exists only with DATABASE_URL. Without it, a book is indexed on one machine, where the name
of the process is enough.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import dagster as dg

from rag_pipeline.core.protocols.state import RunLock, RunLocks

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
