"""Execution of the ingestion job inside a command, on the Dagster instance that the UI shows."""

import errno
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.events import RunFailureReason
from dagster._core.instance.ref import InstanceRef
from dagster._core.storage.noop_compute_log_manager import NoOpComputeLogManager
from sqlalchemy.exc import DBAPIError

from rag_pipeline.core.protocols.state import RunLocks
from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline.orchestration.dead_runs import end_dead_runs
from rag_pipeline.orchestration.instance import lock_opening
from rag_pipeline.orchestration.jobs import INGEST_JOB
from rag_pipeline.orchestration.run_config import IngestConfig
from rag_pipeline.orchestration.run_life import hold_run

_NO_OUTPUT_LOGS = {
    "compute_logs": {
        "module": NoOpComputeLogManager.__module__,
        "class": NoOpComputeLogManager.__name__,
    }
}


def open_instance(log_level: str | None = None) -> dg.DagsterInstance:
    """Open the Dagster instance at DAGSTER_HOME, without a copy of the run's output in its logs.

    Dagster copies the output with child processes. Ctrl-C in a terminal reaches them too, and they
    would print tracebacks. The user of a command sees its output anyway.

    Only one process does this at a time; see `lock_opening`.

    Args:
        log_level: Lowest level of the log lines that this process and its children write; None for
            that of the instance's settings. Dagster's events do not depend on it.
    """
    overrides: dict[str, Any] = dict(_NO_OUTPUT_LOGS)
    if log_level is not None:
        overrides["python_logs"] = {"python_log_level": log_level}
    home = os.environ["DAGSTER_HOME"]
    with lock_opening(Path(home)):
        settings = InstanceRef.from_dir(home, overrides=overrides)
        return dg.DagsterInstance.from_ref(settings)


def run_ingest_job(
    definitions: dg.Definitions, request: IngestionRequest, locks: RunLocks | None = None
) -> bool:
    """Run the ingestion job in this process, on the Dagster instance at DAGSTER_HOME.

    Args:
        definitions: The Dagster definitions that contain the job.
        request: What to ingest.
        locks: The locks of the runs of the book; None if the ledger is in files.

    Returns:
        True if the run succeeded. The run fails if any document fails; the other documents are
        indexed in that case too.

    Raises:
        KeyboardInterrupt: SIGINT or SIGTERM stopped the run.
        OSError: Dagster's database cannot be read or written, for example on a full disk.
    """
    config = IngestConfig(
        doc_ids=None if request.doc_ids is None else list(request.doc_ids),
        delete_ids=list(request.delete_ids),
        rewrite=request.rewrite,
        rebuild=request.rebuild,
        reread=request.reread,
    )
    run_id = str(uuid.uuid4())
    with convert_database_errors(), open_instance() as instance:
        end_dead_runs(instance, locks)
        with hold_run(run_id, locks) as tags:
            result = definitions.resolve_job_def(INGEST_JOB.name).execute_in_process(
                run_config={
                    "ops": {"ingestion": {"config": config.model_dump()}},
                    "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
                },
                instance=instance,
                run_id=run_id,
                tags=tags,
                raise_on_error=False,
            )
    if any(was_interrupted(event) for event in result.all_events):
        raise KeyboardInterrupt  # Dagster reports a signal as a failed run
    return result.success


def was_interrupted(event: dg.DagsterEvent) -> bool:
    """Return True if the event says that a signal ended the run."""
    ended = event.is_job_failure and event.job_failure_data.failure_reason
    return ended is RunFailureReason.UNEXPECTED_TERMINATION


@contextmanager
def convert_database_errors() -> Iterator[None]:
    """Convert errors of Dagster's SQLite database in the `with` block to OSError.

    The OSError names the folder DAGSTER_HOME.
    """
    try:
        yield
    except DBAPIError as error:
        problem = f"Dagster's database cannot be read or written: {error.orig}"
        raise OSError(errno.EIO, problem, os.environ["DAGSTER_HOME"]) from error
