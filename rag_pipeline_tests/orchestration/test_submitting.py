"""Tests of bucket runs that are submitted to a Dagster instance with a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg
import pytest

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.ingestion.parallel.planning import BucketWork
from rag_pipeline.orchestration.bucket_requests import BUCKET_TAG, PLANNED_DOCS_TAG
from rag_pipeline.orchestration.launch import open_instance
from rag_pipeline.orchestration.submitting import Following, submit_and_follow

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

QUEUE = """
run_coordinator:
  module: dagster._core.run_coordinator
  class: QueuedRunCoordinator
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


@pytest.mark.usefixtures("home")
def test_each_bucket_gets_one_run_in_the_queue_and_a_second_command_follows_it() -> None:
    seen: list[Following] = []
    for works in ([make_work(3, 5), make_work(7, 2)], [make_work(3, 5)]):
        with pytest.raises(KeyboardInterrupt):
            submit_and_follow(works, stop_after_one(seen))
    for following in seen:
        assert (following.run_count, following.runs_done, following.docs_planned) == (2, 0, 7)
        assert following.left_s is None
    with open_instance() as instance:
        runs = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED]))
    assert {(run.tags[BUCKET_TAG], run.tags[PLANNED_DOCS_TAG]) for run in runs} == {
        ("003", "5"),
        ("007", "2"),
    }


def test_a_workspace_without_this_code_location_is_named(home: Path) -> None:
    (home / "workspace.yaml").write_text("load_from: []\n")
    with pytest.raises(ConfigurationError, match=r"^DAGSTER_HOME: the code location rag_pipeline"):
        submit_and_follow([make_work(3, 5)], lambda _: None)
