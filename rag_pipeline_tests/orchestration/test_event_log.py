"""Tests of storing many Dagster events in one transaction."""

from __future__ import annotations

import shutil
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from rag_pipeline.orchestration.event_log import store_together

if TYPE_CHECKING:
    from collections.abc import Iterator

POINTS = dg.AssetKey("points")


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    """Return a Dagster instance with the storage settings of this repository."""
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    shutil.copy(Path(__file__).parents[2] / "dagster.yaml", tmp_path)
    with dg.DagsterInstance.from_config(str(tmp_path)) as opened:
        yield opened


def report(instance: dg.DagsterInstance, partition: str) -> None:
    """Log a materialization of one partition."""
    tags = {"dagster/data_version": f"version of {partition}"}
    event = dg.AssetMaterialization(POINTS, partition=partition, metadata={"n": 1}, tags=tags)
    instance.report_runless_asset_event(event)


def read_events(instance: dg.DagsterInstance) -> list[tuple[str | None, dict[str, str]]]:
    """Return partition and tags of each stored materialization, oldest first."""
    records = instance.fetch_materializations(POINTS, limit=20, ascending=True).records
    found = [record.asset_materialization for record in records]
    return [(event.partition, dict(event.tags or {})) for event in found if event]


@pytest.mark.parametrize("together", [False, True])
def test_events_stored_in_one_transaction_are_equal_to_events_stored_singly(
    instance: dg.DagsterInstance, *, together: bool
) -> None:
    with store_together(instance) if together else nullcontext():
        for partition in ("a", "b", "c"):
            report(instance, partition)
    report(instance, "later")
    assert read_events(instance) == [
        (name, {"dagster/data_version": f"version of {name}"}) for name in ("a", "b", "c", "later")
    ]
    assert set(instance.get_materialized_partitions(POINTS)) == {"a", "b", "c", "later"}
    latest = instance.get_latest_materialization_event(POINTS)
    assert latest is not None
    assert latest.asset_materialization is not None
    assert latest.asset_materialization.partition == "later"


def test_the_record_of_the_asset_has_the_last_event_of_the_block(
    instance: dg.DagsterInstance,
) -> None:
    with store_together(instance):
        report(instance, "a")
        report(instance, "b")
    (record,) = instance.get_asset_records([POINTS])
    last = record.asset_entry.last_materialization
    assert last is not None
    assert last.asset_materialization is not None
    assert last.asset_materialization.partition == "b"


def test_a_block_that_fails_stores_no_events(instance: dg.DagsterInstance) -> None:
    def fail() -> None:
        with store_together(instance):
            report(instance, "a")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail()
    assert read_events(instance) == []
    report(instance, "b")
    assert [partition for partition, _ in read_events(instance)] == ["b"]


def test_events_of_another_thread_are_stored_even_if_the_block_fails(
    instance: dg.DagsterInstance,
) -> None:
    def fail() -> None:
        with store_together(instance):
            other = threading.Thread(target=report, args=(instance, "other"))
            other.start()
            other.join()
            report(instance, "own")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail()
    assert [partition for partition, _ in read_events(instance)] == ["other"]
