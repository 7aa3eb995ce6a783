"""Submission of bucket runs to the Dagster instance, and a view of how far they are.

The instance's queue and launcher decide where and when a run is executed. The daemon must run, for
example by `make dev`.
"""

import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import dagster as dg
from dagster._core.remote_representation.code_location import CodeLocation
from dagster._core.remote_representation.external import RemoteJob
from dagster._core.scheduler.instigation import InstigatorType, TickStatus
from dagster._core.storage.tags import PARTITION_NAME_TAG
from dagster._core.workspace.context import WorkspaceProcessContext, WorkspaceRequestContext
from dagster._core.workspace.load_target import (
    ModuleTarget,
    WorkspaceFileTarget,
    WorkspaceLoadTarget,
)

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.protocols.services import Services
from rag_pipeline.ingestion.parallel.planning import BucketWork
from rag_pipeline.orchestration.bucket_requests import (
    PLANNED_DOCS_TAG,
    find_busy_buckets,
    make_run_config,
    make_tags,
)
from rag_pipeline.orchestration.dead_runs import IN_FLIGHT, end_dead_runs
from rag_pipeline.orchestration.jobs import BUCKETS_JOB
from rag_pipeline.orchestration.launch import convert_database_errors, open_instance
from rag_pipeline.orchestration.sensors import docs_changes

_LOCATION: Final = "rag_pipeline"  # as in workspace.yaml
_POLL_S: Final = 1.0
_TICK_POLL_S: Final = 0.2
_LONGEST_TICK_S: Final = 60.0  # the time that Dagster allows a sensor


@dataclass(frozen=True, slots=True)
class Following:
    """How far the runs of an ingestion are.

    Attributes:
        runs_done: Runs that have ended.
        runs_running: Runs that are executed now; the others wait in the queue.
        run_count: All runs.
        runs_failed: Runs that failed or were canceled.
        docs_done: Documents of the runs that have succeeded.
        docs_planned: Documents of all runs according to the plan.
        docs_failed: Documents that failed in the runs that have succeeded.
        docs_timed: Those of `docs_done` whose runs began after the view was opened.
        elapsed_s: Seconds since the view was opened.
    """

    runs_done: int
    runs_running: int
    run_count: int
    runs_failed: int
    docs_done: int
    docs_planned: int
    docs_failed: int
    docs_timed: int
    elapsed_s: float

    @property
    def docs_per_s(self) -> float:
        """Documents that were done in a second, on average since the view was opened."""
        return self.docs_timed / self.elapsed_s if self.elapsed_s else 0.0

    @property
    def left_s(self) -> float | None:
        """Seconds until all documents are done at this rate; None if the rate is not known yet."""
        left = self.docs_planned - self.docs_done
        return left / self.docs_per_s if self.docs_per_s else None


def submit_and_follow(
    plan: Callable[[], Sequence[BucketWork]],
    show: Callable[[Following], object],
    services: Services,
) -> Following:
    """Submit a run for each work whose bucket has none yet, and follow all runs to their end.

    While the runs are submitted, the sensor and other commands submit none.

    Args:
        plan: Function that returns the work of one bucket each.
        show: Function that is called about once a second with how far the runs are.
        services: The services of the book, for its locks.

    Returns:
        The final numbers.

    Raises:
        KeyboardInterrupt: The user stopped the view. The runs go on.
        ConfigurationError: The code location cannot be loaded.
        StoreLockedError: Another command submitted runs during the whole wait.
    """
    with convert_database_errors(), open_instance() as instance:
        end_dead_runs(instance, services.run_locks)
        begun = time.monotonic()
        with services.lock_submission():
            _wait_for_sensor(instance)
            # Listed before the plan, which may lack what a run does that ends meanwhile.
            earlier = _list_unfinished(instance)
            busy = find_busy_buckets(earlier)
            new = [work for work in plan() if busy.isdisjoint(work.buckets)]
            run_ids = [run.run_id for run in earlier]
            if new:
                with _open_workspace(instance) as workspace:
                    run_ids += submit_runs(instance, workspace, new)
        running = {run.run_id for run in earlier if run.status is dg.DagsterRunStatus.STARTED}
        while True:
            runs = instance.get_runs(dg.RunsFilter(run_ids=run_ids)) if run_ids else []
            found = _sum_up(runs, running, time.monotonic() - begun)
            show(found)
            if found.runs_done == found.run_count:
                return found
            time.sleep(_POLL_S)
            end_dead_runs(instance, services.run_locks)


def submit_runs(
    instance: dg.DagsterInstance, workspace: WorkspaceRequestContext, works: Sequence[BucketWork]
) -> list[str]:
    """Submit a run for the work of each bucket, and return the ids of the runs."""
    location = workspace.get_code_location(_LOCATION)
    (repository,) = location.get_repositories().values()
    job = repository.get_full_job(BUCKETS_JOB.name)
    run_ids = []
    for work in works:
        run_ids.append(_create_run(instance, location, job, work))
        instance.submit_run(run_ids[-1], workspace)
    return run_ids


def _create_run(
    instance: dg.DagsterInstance, location: CodeLocation, job: RemoteJob, work: BucketWork
) -> str:
    config = make_run_config(work)
    plan = location.get_execution_plan(job, config, None, None, instance)
    (bucket,) = work.buckets
    (repository,) = location.get_repositories().values()
    run = instance.create_run(
        job_name=job.name,
        run_id=None,
        run_config=config,
        status=None,
        tags={**job.tags, **make_tags(work), PARTITION_NAME_TAG: f"{bucket:03}"},
        root_run_id=None,
        parent_run_id=None,
        step_keys_to_execute=plan.execution_plan_snapshot.step_keys_to_execute,
        execution_plan_snapshot=plan.execution_plan_snapshot,
        job_snapshot=job.job_snapshot,
        parent_job_snapshot=job.parent_job_snapshot,
        asset_selection=None,
        asset_check_selection=None,
        resolved_op_selection=job.resolved_op_selection,
        op_selection=None,
        remote_job_origin=job.get_remote_origin(),
        job_code_origin=job.get_python_origin(),
        asset_graph=repository.asset_graph,
    )
    return run.run_id


@contextmanager
def _open_workspace(instance: dg.DagsterInstance) -> Iterator[WorkspaceRequestContext]:
    """Load the code location that DAGSTER_HOME/workspace.yaml names, or else this package's."""
    file = Path(os.environ["DAGSTER_HOME"]) / "workspace.yaml"
    target: WorkspaceLoadTarget = ModuleTarget("rag_pipeline.definitions", None, None, _LOCATION)
    if file.is_file():
        target = WorkspaceFileTarget([str(file)])
    with WorkspaceProcessContext(instance, target, code_server_log_level="ERROR") as process:
        workspace = process.create_request_context()
        if not workspace.has_code_location(_LOCATION):
            problem = f"the code location {_LOCATION} cannot be loaded from {file}"
            remedy = "Start its server, or correct the file. It needs this location name"
            raise ConfigurationError("DAGSTER_HOME", problem, remedy)
        yield workspace


def _list_unfinished(instance: dg.DagsterInstance) -> Sequence[dg.DagsterRun]:
    return instance.get_runs(dg.RunsFilter(job_name=BUCKETS_JOB.name, statuses=list(IN_FLIGHT)))


def _wait_for_sensor(instance: dg.DagsterInstance) -> None:
    """Wait until Dagster has submitted the runs that a tick of the sensor has requested.

    The tick itself requests none while this process holds the lock of the submission. A tick that
    a killed daemon left behind is not waited for any longer than the longest tick takes.
    """
    deadline = time.monotonic() + _LONGEST_TICK_S
    sensors = instance.all_instigator_state(instigator_type=InstigatorType.SENSOR)
    for sensor in (sensor for sensor in sensors if sensor.name == docs_changes.name):
        place = (sensor.instigator_origin_id, sensor.selector_id)
        while time.monotonic() < deadline and instance.get_ticks(
            *place, limit=1, statuses=[TickStatus.STARTED]
        ):
            time.sleep(_TICK_POLL_S)


def _sum_up(
    runs: Sequence[dg.DagsterRun], running_before: Collection[str], elapsed_s: float
) -> Following:
    failed = {dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED}
    done = [run for run in runs if run.status is dg.DagsterRunStatus.SUCCESS]
    return Following(
        runs_done=sum(run.status not in IN_FLIGHT for run in runs),
        runs_running=sum(run.status is dg.DagsterRunStatus.STARTED for run in runs),
        run_count=len(runs),
        runs_failed=sum(run.status in failed for run in runs),
        docs_done=sum(int(run.tags.get(PLANNED_DOCS_TAG, 0)) for run in done),
        docs_planned=sum(int(run.tags.get(PLANNED_DOCS_TAG, 0)) for run in runs),
        docs_timed=sum(
            int(run.tags.get(PLANNED_DOCS_TAG, 0))
            for run in done
            if run.run_id not in running_before
        ),
        docs_failed=sum(int(run.tags.get("docs_failed", 0)) for run in done),
        elapsed_s=elapsed_s,
    )
