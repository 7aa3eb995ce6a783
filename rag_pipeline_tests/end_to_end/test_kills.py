"""Tests that the next run repairs what a killed ingestion, rebuild or repair leaves behind."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from rag_pipeline_tests.end_to_end.kill_points import ADDED, EDITED, KILLED, MOVED, UNKNOWN

if TYPE_CHECKING:
    from pathlib import Path

Points = dict[str, list[Any]]

pytestmark = pytest.mark.timeout(900)
SCOPES = pytest.mark.parametrize(
    "scope",
    [
        pytest.param("one", id="each_kind_of_moment", marks=pytest.mark.slow),
        pytest.param("thorough", id="every_moment", marks=pytest.mark.nightly),
    ],
)


def run_moments(root: Path, scenario: str, scope: str, *seen: str) -> dict[str, Any]:
    """Run a scenario; check that every kill happened, and that all kinds in `seen` occurred."""
    module = "rag_pipeline_tests.end_to_end.kill_points"
    command = [sys.executable, "-m", module, str(root), scenario, scope]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=840)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    outcome = dict(json.loads(done.stdout))
    names = [moment["name"] for moment in outcome["moments"]]
    for kind in seen:
        assert any(kind in name for name in names), f"no moment of {kind} was seen"
    assert {moment["status"] for moment in outcome["moments"]} == {KILLED}
    print()  # noqa: T201  # the table of moments, shown with -s
    for number, name in enumerate(names):
        print(f"{number:3} {scenario} killed {name}")  # noqa: T201  # a row of the table
    return outcome


def check_whole(after: dict[str, Any], wanted: Points, name: str) -> None:
    """Check that the current collection equals a clean build, and that nothing is left over."""
    assert after["points"] == wanted, name
    assert (after["audit"], after["leftovers"]) == ([], []), name
    assert after["is_up_to_date"], name


def select_document(points: Points, doc_id: str) -> Points:
    """Return the points of one document."""
    return {key: point for key, point in points.items() if point[0]["doc_path"] == doc_id}


def contains(found: Points, wanted: Points) -> bool:
    """Return True if all wanted points were found with equal content."""
    return all(found.get(key) == point for key, point in wanted.items())


def texts(points: Points) -> set[str]:
    """Return the texts of the points."""
    return {point[0]["text"] for point in points.values()}


@SCOPES
def test_a_killed_ingest_of_edits_loses_nothing_and_is_completed_by_the_next(
    tmp_path: Path, scope: str
) -> None:
    services = ("cache", "embedder", "ledger", "progress", "store")
    outcome = run_moments(tmp_path, "edits", scope, *services)
    old, new = outcome["old"], outcome["new"]
    for moment in outcome["moments"]:
        check_whole(moment["resumed"], new, moment["name"])
        check_whole(moment["reverted"], old, moment["name"])
        check_nothing_is_lost(moment["found"]["points"], old, new, moment["name"])


def check_nothing_is_lost(found: Points, old: Points, new: Points, name: str) -> None:
    """Check that each page has its old or its new points.

    After a kill during a write, each single point is old or new. A page that moved is found under
    its old or its new path.
    """
    for doc_id in {point[0]["doc_path"] for point in old.values()} - {MOVED[0]}:
        before, after = select_document(old, doc_id), select_document(new, doc_id)
        if not name.startswith("during"):
            assert contains(found, before) or contains(found, after), name
        for key in before.keys() & after.keys():
            assert found[key] in (before[key], after[key]), name
    is_old = contains(found, select_document(old, MOVED[0]))
    moved = is_old or contains(found, select_document(new, MOVED[1]))
    assert moved, name
    assert {point[0]["doc_path"] for point in found.values()} >= {EDITED}, name
    if ADDED not in {point[0]["doc_path"] for point in found.values()}:
        assert texts(found) <= texts(old) | texts(select_document(new, EDITED)), name


@SCOPES
def test_a_killed_first_ingest_is_completed_by_the_next(tmp_path: Path, scope: str) -> None:
    outcome = run_moments(tmp_path, "nothing", scope, "catalog.create", "catalog.switch_to")
    for moment in outcome["moments"]:
        check_whole(moment["resumed"], outcome["new"], moment["name"])


@SCOPES
def test_a_killed_rebuild_leaves_the_old_or_the_new_collection_complete(
    tmp_path: Path, scope: str
) -> None:
    seen = ("catalog.create", "cache", "store.upsert", "ledger", "catalog.switch_to")
    outcome = run_moments(tmp_path, "rebuild", scope, *seen)
    old, new = outcome["old"], outcome["new"]
    switched = False
    for moment in outcome["moments"]:
        name, found = moment["name"], moment["found"]
        switched = switched or name.startswith("after catalog.switch_to")
        assert found["points"] == (new if switched else old), name
        assert found["audit"] == [], name
        for way, wanted in (("resumed", new), ("reverted", old), ("rebuilt", new)):
            if way in moment:
                check_whole(moment[way], wanted, name)


@SCOPES
def test_a_rebuild_killed_while_it_discards_its_collection_changes_nothing(
    tmp_path: Path, scope: str
) -> None:
    outcome = run_moments(tmp_path, "broken", scope, "ledger.record_failure", "catalog.discard")
    for moment in outcome["moments"]:
        assert moment["found"]["points"] == outcome["old"], moment["name"]
        assert moment["found"]["audit"] == [], moment["name"]
        check_whole(moment["resumed"], outcome["new"], moment["name"])


@SCOPES
def test_a_killed_repair_loses_nothing_and_is_completed_by_the_next(
    tmp_path: Path, scope: str
) -> None:
    outcome = run_moments(tmp_path, "repair", scope, "store.upsert", "store.delete", "ledger")
    old = outcome["old"]
    for moment in outcome["moments"]:
        found = moment["found"]["points"]
        assert contains(found, select_document(old, MOVED[0])), moment["name"]
        assert contains(found, select_document(old, UNKNOWN)), moment["name"]
        kept = len(select_document(found, EDITED))
        assert kept >= len(select_document(old, EDITED)) - 1, moment["name"]
        check_whole(moment["resumed"], old, moment["name"])
