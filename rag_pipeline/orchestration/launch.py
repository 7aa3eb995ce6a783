"""Execution of the ingestion job inside a command, on the Dagster instance that the UI shows."""

import errno
import json
import os
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
import yaml
from sqlalchemy.exc import DBAPIError

from rag_pipeline.adapters.local_files import write_text_atomically
from rag_pipeline.core.protocols import RunLocks
from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest
from rag_pipeline.ingestion.planning import scan_docs
from rag_pipeline.orchestration.checks import reconcile
from rag_pipeline.orchestration.dead_runs import LOCATION, end_dead_runs, hold_run
from rag_pipeline.orchestration.instance import lock_opening
from rag_pipeline.orchestration.jobs import INGEST_JOB, list_in_flight
from rag_pipeline.orchestration.resources import IngestConfig

_COMMAND_SETTINGS = "command.yaml"
"""Dagster's settings for a command: those of dagster.yaml, except for the logs of the output."""

_NO_OUTPUT_LOGS = {
    "module": "dagster.core.storage.noop_compute_log_manager",
    "class": "NoOpComputeLogManager",
}
_ORIGIN = {
    "__class__": "ExternalPipelineOrigin",
    "external_repository_origin": {
        "__class__": "ExternalRepositoryOrigin",
        "repository_location_origin": {
            "__class__": "RegisteredRepositoryLocationOrigin",
            "location_name": LOCATION,
        },
        "repository_name": "__repository__",
    },
    "pipeline_name": INGEST_JOB.name,
}
"""The origin of the ingestion job in the code location, as Dagster stores it with a run."""


def open_instance() -> dg.DagsterInstance:
    """Open the Dagster instance at DAGSTER_HOME, without a copy of the run's output in its logs.

    Dagster copies the output with child processes. Ctrl-C in a terminal reaches them too, and they
    would print tracebacks. The user of a command sees its output anyway.

    Only one process does this at a time; see `lock_opening`.
    """
    home = Path(os.environ["DAGSTER_HOME"])
    with lock_opening(home):
        known = home / "dagster.yaml"
        settings = yaml.safe_load(known.read_text("utf-8")) if known.is_file() else None
        text = yaml.safe_dump((settings or {}) | {"compute_logs": _NO_OUTPUT_LOGS})
        write_text_atomically(home / _COMMAND_SETTINGS, text)
        return dg.DagsterInstance.from_config(str(home), _COMMAND_SETTINGS)


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
    config = IngestConfig(**asdict(request))
    run_id = str(uuid.uuid4())
    with convert_database_errors(), open_instance() as instance:
        end_dead_runs(instance, locks)
        origin: Any = dg.deserialize_value(json.dumps(_ORIGIN))
        # Dagster's UI finds a run by the origin of its job: in the timeline, on the page of the
        # job, and to execute it again. A run in this process would have none.
        create = partial(instance.create_run_for_job, remote_job_origin=origin)
        vars(instance)["create_run_for_job"] = create
        with hold_run(run_id, locks) as tags, _hold_databases():
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
    failures = [event.job_failure_data for event in result.all_events if event.is_job_failure]
    reasons = [failure.failure_reason for failure in failures]
    if any(reason and reason.name == "UNEXPECTED_TERMINATION" for reason in reasons):
        raise KeyboardInterrupt  # Dagster reports a signal as a failed run
    return result.success


def reconcile_history(context: IngestionContext) -> None:
    """Correct what the UI shows of each document, without a run.

    Runs whose process was killed are marked as failed first. Nothing else is done while a run
    indexes documents.
    """
    with convert_database_errors(), open_instance() as instance:
        end_dead_runs(instance, context.services.run_locks)
        scan = scan_docs(context)
        if not list_in_flight(instance):
            reconcile(instance, context, scan)


@contextmanager
def _hold_databases() -> Iterator[None]:
    """Keep a connection to each SQLite database of Dagster open during the `with` block.

    SQLite copies its write-ahead log into the database each time the last connection is closed, and
    that is slow.
    """
    home = Path(os.environ["DAGSTER_HOME"])
    with ExitStack() as stack:
        for path in (*home.glob("*.db"), *home.glob("*/*.db")):
            connection = stack.enter_context(closing(sqlite3.connect(path)))
            # SQLite opens the file only when a table is read. No transaction stays open.
            connection.execute("select count(*) from sqlite_master").close()
        yield


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
