"""Starting the ingestion job from a command: in this process, on the instance that the UI shows."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from dagster._core.events import RunFailureReason
from sqlalchemy.exc import DBAPIError

from rag_pipeline.adapters.state.locks import hold_lock
from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline.orchestration.assets.ingestion import IngestConfig
from rag_pipeline.orchestration.dead_runs import end_dead_runs, name_process
from rag_pipeline.orchestration.event_log import hold_open
from rag_pipeline.orchestration.jobs import INGEST_JOB

_OPENING_TIMEOUT_S = 60.0


def _open_instance() -> dg.DagsterInstance:
    """Open the instance; two processes that make its tables at the same time would collide."""
    with hold_lock(Path(os.environ["DAGSTER_HOME"]) / ".opening.lock", _OPENING_TIMEOUT_S):
        return dg.DagsterInstance.get()


def run_ingest_job(definitions: dg.Definitions, request: IngestionRequest) -> bool:
    """Run the ingestion job to its end on the instance at DAGSTER_HOME.

    Args:
        definitions: The code location.
        request: What to ingest, with all stages.

    Returns:
        True if the run succeeded. Failed documents make it fail, though the others are indexed.

    Raises:
        KeyboardInterrupt: The run was told to stop, by SIGINT or SIGTERM.
        OSError: Dagster's records cannot be read or written, for example on a full disk.
    """
    config = IngestConfig(
        doc_ids=None if request.doc_ids is None else list(request.doc_ids),
        delete_ids=list(request.delete_ids),
        rewrite=request.rewrite,
        rebuild=request.rebuild,
        reread=request.reread,
    )
    with _file_errors(), _open_instance() as instance, hold_open(instance):
        end_dead_runs(instance)
        result = definitions.resolve_job_def(INGEST_JOB.name).execute_in_process(
            run_config={
                "ops": {"ingestion": {"config": config.model_dump()}},
                "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
            },
            instance=instance,
            tags=name_process(),
            raise_on_error=False,
        )
    if any(_was_interrupted(event) for event in result.all_events):
        raise KeyboardInterrupt  # Dagster counts a signal as a failure of the run
    return result.success


def _was_interrupted(event: dg.DagsterEvent) -> bool:
    ended = event.is_job_failure and event.job_failure_data.failure_reason
    return ended is RunFailureReason.UNEXPECTED_TERMINATION


@contextmanager
def _file_errors() -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        problem = f"Dagster's records cannot be read or written: {error.orig}"
        raise OSError(errno.EIO, problem, os.environ["DAGSTER_HOME"]) from error
