"""The job of `rag-pipeline ingest --workers`: one process of this machine per share of buckets."""

import uuid
from collections.abc import Sequence
from typing import Any, Final

import dagster as dg
from dagster import build_reconstructable_job
from dagster._core.execution.api import execute_run
from dagster._core.executor.child_process_executor import ChildProcessCrashException

from rag_pipeline.core.errors import StoreError
from rag_pipeline.core.protocols.state import RunLocks
from rag_pipeline.ingestion.parallel.planning import BucketWork
from rag_pipeline.ingestion.report import IngestionReport
from rag_pipeline.orchestration.buckets import BucketConfig, make_config, run_work
from rag_pipeline.orchestration.dead_runs import end_dead_runs
from rag_pipeline.orchestration.forking import START_METHOD
from rag_pipeline.orchestration.jobs import WORKERS_JOB_NAME
from rag_pipeline.orchestration.launch import (
    convert_database_errors,
    open_instance,
    was_interrupted,
)
from rag_pipeline.orchestration.resources import IngestionResource
from rag_pipeline.orchestration.run_life import hold_run

_DEFINITIONS: Final = ("rag_pipeline.definitions", "define_workers_job")
_REPORT: Final = "report"


@dg.op
def index_share(
    context: dg.OpExecutionContext,
    config: BucketConfig,
    ingestion: dg.ResourceParam[IngestionResource],
) -> None:
    """Index the buckets of one share. Failed documents are recorded in the ledger."""
    with hold_run(context.run_id, ingestion.context.services.run_locks):
        report = run_work(context, config.to_work(), ingestion)
    context.add_output_metadata({_REPORT: dg.MetadataValue.json(report.to_json())})


def build_workers_job(share_count: int, resource: IngestionResource) -> dg.JobDefinition:
    """Return a job with one step per share; Dagster's multiprocess executor runs the steps."""
    shares = [
        dg.NodeInvocation(index_share.name, alias=_name_share(number))
        for number in range(share_count)
    ]
    graph = dg.GraphDefinition(
        name=WORKERS_JOB_NAME,
        node_defs=[index_share],
        dependencies={share: {} for share in shares},
    )
    return graph.to_job(
        resource_defs={"ingestion": dg.ResourceDefinition.hardcoded_resource(resource)},
        executor_def=dg.multiprocess_executor,
    )


def run_shares(
    shares: Sequence[BucketWork], worker_count: int, locks: RunLocks | None = None
) -> list[IngestionReport]:
    """Index shares of the buckets in worker processes, and return the reports of the workers.

    The processes read the settings from the environment. `forking.start_imports` makes them start
    faster.

    Args:
        shares: The work; one step of the run for each.
        worker_count: Most processes at the same time.
        locks: The locks of the runs of the book; None if the ledger is in files.

    Raises:
        KeyboardInterrupt: SIGINT or SIGTERM stopped the run.
        StoreError: A worker ended before its share was complete. The other shares are indexed.
        OSError: Dagster's database cannot be read or written, for example on a full disk.
    """
    job = build_reconstructable_job(*_DEFINITIONS, reconstructable_args=(len(shares),))
    config: dict[str, Any] = {
        "ops": {_name_share(place): {"config": make_config(it)} for place, it in enumerate(shares)},
        "execution": {
            "config": {"max_concurrent": worker_count, "start_method": {START_METHOD: {}}}
        },
        "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
    }
    run_id = str(uuid.uuid4())
    # The console logger of the config has no effect before a worker has loaded the job.
    with convert_database_errors(), open_instance(log_level="WARNING") as instance:
        end_dead_runs(instance, locks)
        with hold_run(run_id, locks) as tags:
            # `dg.execute_job` does the same, but gives the run an id that is not known before.
            run = instance.create_run_for_job(
                job.get_definition(),
                run_id=run_id,
                run_config=config,
                tags=tags,
                job_code_origin=job.get_python_origin(),
            )
            events = execute_run(job, run, instance).all_events
    if any(was_interrupted(event) for event in events):
        raise KeyboardInterrupt
    failed = [event for event in events if event.is_step_failure]
    if failed:
        reasons = {_describe_failure(event) for event in failed}
        raise StoreError(
            f"{len(failed)} of {len(shares)} workers ended before their documents were indexed "
            f"({'; '.join(sorted(reasons))}). Run `rag-pipeline ingest` again to continue"
        )
    outputs = [event.step_output_data for event in events if event.is_successful_output]
    return [IngestionReport.from_json(_read_report(output.metadata)) for output in outputs]


def _name_share(number: int) -> str:
    return f"share_{number}"


def _read_report(metadata: Any) -> dict[str, Any]:  # noqa: ANN401  # Dagster's mapping
    return dict(metadata[_REPORT].value)


def _describe_failure(event: dg.DagsterEvent) -> str:
    """Return the message of the error that ended a step, in one line."""
    error = event.step_failure_data.error
    while error is not None and error.cause is not None:
        error = error.cause
    if error is None or error.cls_name == ChildProcessCrashException.__name__:
        return "the process was killed"
    return error.message.strip().splitlines()[0].rstrip(".")
