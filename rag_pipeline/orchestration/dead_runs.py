"""Detection of Dagster runs whose process was killed, with a run tag that names the process."""

import os
import socket

import dagster as dg

from rag_pipeline.orchestration.jobs import INGESTING_JOBS

_PROCESS_TAG = "rag_pipeline/process"  # host and process id

IN_FLIGHT = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)
"""The states of a run that has not ended."""

# A repeated run has the tags of the first one, so also the name of its process, until it begins.
_NOT_BEGUN = frozenset({dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.STARTING})


def name_process() -> dict[str, str]:
    """Return a Dagster run tag (name and value) that says that this process executes the run.

    The value consists of the host name and the process id.
    """
    return {_PROCESS_TAG: f"{socket.gethostname()}:{os.getpid()}"}


def end_dead_runs(instance: dg.DagsterInstance) -> None:
    """Mark unfinished ingestion runs as failed if their process no longer exists on this machine.

    Dagster itself does not notice the end of a run that a command executes, or whose Dagster server
    was killed too. Until the maximum run time was over, such a run would count as in progress, and
    no other ingestion would be started. A run that waits or is being started is left to Dagster.
    """
    begun = [status for status in IN_FLIGHT if status not in _NOT_BEGUN]
    unfinished = instance.get_runs(dg.RunsFilter(statuses=begun))
    for run in (run for run in unfinished if run.job_name in INGESTING_JOBS):
        host, _, pid = run.tags.get(_PROCESS_TAG, "").rpartition(":")
        if host == socket.gethostname() and not _is_alive(int(pid)):
            instance.report_run_failed(run, "the process that executed this run was killed")


def _is_alive(pid: int) -> bool:
    """Return True if a process with this id exists on this machine, owned by any user."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
