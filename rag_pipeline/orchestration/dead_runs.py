"""Runs whose process was killed: which process carries out a run, and ending what none does.

Belongs here: the tag that says so, and the states of a run in flight. Does not belong here:
starting runs (launch, sensors).
"""

import os
import socket

import dagster as dg

from rag_pipeline.orchestration.jobs import INGEST_JOB

_PROCESS_TAG = "rag_pipeline/process"  # host and process id

IN_FLIGHT = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)
"""States of a run that has not ended."""


def name_process() -> dict[str, str]:
    """The tag of a run that this process carries out to its end."""
    return {_PROCESS_TAG: f"{socket.gethostname()}:{os.getpid()}"}


def end_dead_runs(instance: dg.DagsterInstance) -> None:
    """Mark runs as failed whose process was killed on this machine.

    Dagster cannot ask after a command, nor after a run worker whose server was killed too: they
    would count as in flight, and hold up the sensor and the queue, until the longest run time is
    over.
    """
    unended = dg.RunsFilter(job_name=INGEST_JOB.name, statuses=list(IN_FLIGHT))
    for run in instance.get_runs(unended):
        host, _, pid = run.tags.get(_PROCESS_TAG, "").rpartition(":")
        if host == socket.gethostname() and not _is_alive(int(pid)):
            instance.report_run_failed(run, "the process that carried out this run was killed")


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
