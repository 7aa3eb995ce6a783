"""Tests of bucket runs that are submitted to a Dagster instance with a queue."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import dagster as dg
import pytest
from dagster._core.remote_origin import (
    ManagedGrpcPythonEnvCodeLocationOrigin,
    RemoteInstigatorOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    InstigatorTick,
    InstigatorType,
    TickData,
    TickStatus,
)
from dagster._core.storage.tags import PARTITION_NAME_TAG
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

from rag_pipeline.adapters.local_files import hold_lock
from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.definitions import defs
from rag_pipeline.ingestion.parallel.planning import BucketWork
from rag_pipeline.orchestration import submitting
from rag_pipeline.orchestration.bucket_requests import BUCKET_TAG, PLANNED_DOCS_TAG
from rag_pipeline.orchestration.jobs import BUCKETS_JOB
from rag_pipeline.orchestration.launch import open_instance
from rag_pipeline.orchestration.sensors import docs_changes
from rag_pipeline.orchestration.submitting import Following, submit_and_follow

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from rag_pipeline.core.protocols.services import Services
    from rag_pipeline_tests.book import Book
    from rag_pipeline_tests.orchestration.dagster_book import DagsterBook

# Each submission starts a code server, which takes half a minute on a busy machine.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

QUEUE = """
run_coordinator:
  module: dagster._core.run_coordinator
  class: QueuedRunCoordinator
code_servers:
  wait_for_local_processes_on_shutdown: true
telemetry:
  enabled: false
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The DAGSTER_HOME of an instance with a queue and without a daemon that empties it."""
    home = tmp_path / "dagster"
    home.mkdir()
    (home / "dagster.yaml").write_text(QUEUE)
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    return home


def make_work(bucket: int, doc_count: int) -> BucketWork:
    return BucketWork((bucket,), 256, "snapshot", "fingerprint", "build-1", (), doc_count)


def stop_after_one(seen: list[Following]) -> Callable[[Following], None]:
    """Return a view that ends like one that the user stops with Ctrl-C."""

    def show(following: Following) -> None:
        seen.append(following)
        raise KeyboardInterrupt

    return show


@pytest.fixture
def services(book: Book) -> Services:
    """The services of a small book, for the locks."""
    return book.build_context().services


def read_queue() -> set[str]:
    """Return the buckets whose runs are in the queue."""
    with open_instance() as instance:
        runs = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED]))
    buckets = [run.tags[BUCKET_TAG] for run in runs]
    assert len(buckets) == len(set(buckets)), buckets
    return set(buckets)


@pytest.mark.usefixtures("home")
def test_each_bucket_gets_one_run_in_the_queue_and_a_second_command_follows_it(
    services: Services,
) -> None:
    seen: list[Following] = []
    for works in ([make_work(3, 5), make_work(7, 2)], [make_work(3, 5)]):
        with pytest.raises(KeyboardInterrupt):
            submit_and_follow(partial(tuple, works), stop_after_one(seen), services)
    for following in seen:
        assert (following.run_count, following.runs_done, following.docs_planned) == (2, 0, 7)
        assert following.left_s is None
    with open_instance() as instance:
        runs = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED]))
    assert {(run.tags[BUCKET_TAG], run.tags[PLANNED_DOCS_TAG]) for run in runs} == {
        ("003", "5"),
        ("007", "2"),
    }


@pytest.mark.usefixtures("home")
def test_commands_at_the_same_time_submit_each_bucket_once(services: Services) -> None:
    followed: list[Following] = []

    def submit() -> None:
        works = [make_work(3, 5), make_work(7, 2)]
        with suppress(KeyboardInterrupt):
            submit_and_follow(lambda: works, stop_after_one(followed), waiting)

    def wait_long(timeout_s: float | None = None) -> AbstractContextManager[None]:
        return hold_lock(lock_file, 60.0 if timeout_s is None else timeout_s)

    lock_file = Path(os.environ["DATA_DIR"]) / "submission.lock"
    waiting = replace(services, lock_submission=wait_long)
    with ThreadPoolExecutor(3) as pool:
        for command in [pool.submit(submit) for _ in range(3)]:
            command.result()
    assert [following.run_count for following in followed] == [2, 2, 2]
    assert read_queue() == {"003", "007"}


@pytest.mark.usefixtures("home")
def test_the_sensor_requests_nothing_while_a_command_submits_runs(
    services: Services, dagster_book: DagsterBook
) -> None:
    results: list[object] = []

    def plan() -> list[BucketWork]:
        context = dg.build_sensor_context(
            instance=dagster_book.instance,
            resources={"ingestion": dagster_book.resource},
            definitions=dagster_book.definitions,
        )
        results.append(docs_changes(context))
        return []

    submit_and_follow(plan, lambda _: None, services)
    (skipped,) = results
    assert isinstance(skipped, dg.SkipReason)
    assert "submits runs at this moment" in (skipped.skip_message or "")


@pytest.mark.usefixtures("home")
def test_a_command_waits_until_the_requests_of_a_tick_are_runs(services: Services) -> None:
    planned = Event()

    def plan() -> list[BucketWork]:
        planned.set()
        return [make_work(3, 5), make_work(7, 2)]

    def submit() -> None:
        with suppress(KeyboardInterrupt):
            submit_and_follow(plan, stop_after_one([]), services)

    with open_instance() as instance, ThreadPoolExecutor(1) as pool:
        tick = begin_tick(instance)
        command = pool.submit(submit)
        assert not planned.wait(3)
        job = defs.resolve_job_def(BUCKETS_JOB.name)
        instance.create_run_for_job(job, tags={PARTITION_NAME_TAG: "003"})
        instance.update_tick(tick.with_status(TickStatus.SUCCESS))
        command.result()
    assert read_queue() == {"007"}


@pytest.mark.usefixtures("home")
def test_a_run_that_ends_while_a_command_plans_is_followed_and_not_submitted_again(
    services: Services,
) -> None:
    seen: list[Following] = []
    with open_instance() as instance:
        job = defs.resolve_job_def(BUCKETS_JOB.name)
        run = instance.create_run_for_job(job, tags={PARTITION_NAME_TAG: "003"})

    def plan() -> list[BucketWork]:
        with open_instance() as instance:
            instance.report_run_failed(run)
        return [make_work(3, 5), make_work(7, 2)]

    with pytest.raises(KeyboardInterrupt):
        submit_and_follow(plan, stop_after_one(seen), services)
    assert read_queue() == {"007"}
    assert (seen[0].run_count, seen[0].runs_failed) == (2, 1)


@pytest.mark.usefixtures("home")
def test_a_tick_that_never_ends_delays_a_command_only_for_a_while(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submitting, "_LONGEST_TICK_S", 0.5)
    with open_instance() as instance:
        begin_tick(instance)
    with pytest.raises(KeyboardInterrupt):
        submit_and_follow(lambda: [make_work(3, 5)], stop_after_one([]), services)
    assert read_queue() == {"003"}


def begin_tick(instance: dg.DagsterInstance) -> InstigatorTick:
    """Record a tick of the sensor that has begun, as the daemon does."""
    location = ManagedGrpcPythonEnvCodeLocationOrigin(
        LoadableTargetOrigin(python_file="none.py"), "rag_pipeline"
    )
    origin = RemoteInstigatorOrigin(
        RemoteRepositoryOrigin(location, "__repository__"), docs_changes.name
    )
    state = InstigatorState(origin, InstigatorType.SENSOR, InstigatorStatus.RUNNING)
    instance.add_instigator_state(state)
    return instance.create_tick(
        TickData(
            instigator_origin_id=state.instigator_origin_id,
            instigator_name=docs_changes.name,
            instigator_type=InstigatorType.SENSOR,
            status=TickStatus.STARTED,
            timestamp=time.time(),
            selector_id=state.selector_id,
        )
    )


def test_a_workspace_without_this_code_location_is_named(home: Path, services: Services) -> None:
    (home / "workspace.yaml").write_text("load_from: []\n")
    with pytest.raises(ConfigurationError, match=r"^DAGSTER_HOME: the code location rag_pipeline"):
        submit_and_follow(lambda: [make_work(3, 5)], lambda _: None, services)
