"""An ingestion killed at any moment leaves what the next one makes whole."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from rag_pipeline_tests.end_to_end.kill_points import ADDED, EDITED, KILLED, MOVED

if TYPE_CHECKING:
    from pathlib import Path

Points = dict[str, list[Any]]

SCOPES = [
    pytest.param([], id="each_kind_of_moment", marks=pytest.mark.slow),
    pytest.param(["thorough"], id="every_moment", marks=pytest.mark.nightly),
]


def run_moments(root: Path, *words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "rag_pipeline_tests.end_to_end.kill_points", str(root), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=840)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return dict(json.loads(done.stdout))


def of_document(points: Points, doc_id: str) -> Points:
    return {key: point for key, point in points.items() if point[0]["doc_path"] == doc_id}


def holds(found: Points, wanted: Points) -> bool:
    return all(found.get(key) == point for key, point in wanted.items())


def texts(points: Points) -> set[str]:
    return {point[0]["text"] for point in points.values()}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("words", SCOPES)
def test_a_killed_ingest_of_edits_loses_nothing_and_is_made_whole(
    tmp_path: Path, words: list[str]
) -> None:
    outcome = run_moments(tmp_path, *words)
    old, new = outcome["old"], outcome["new"]
    names = [moment["name"] for moment in outcome["moments"]]
    for service in ("artifacts", "cache", "embedder", "ledger", "store"):
        assert any(service in name for name in names), f"no write of {service} was seen"
    print()  # noqa: T201  # the table of moments, shown with -s
    for number, moment in enumerate(outcome["moments"]):
        resumed, reverted = moment["resumed"], moment["reverted"]
        print(f"{number:3} killed {moment['name']}: made whole, forwards and back")  # noqa: T201  # the same
        assert moment["status"] == KILLED
        for after, wanted in ((resumed, new), (reverted, old)):
            assert after["points"] == wanted, moment["name"]
            assert (after["failures"], after["audit"]) == ([], []), moment["name"]
            assert after["at_rest"], moment["name"]
        check_nothing_is_lost(resumed["found"], old, new, moment["name"])


def check_nothing_is_lost(found: Points, old: Points, new: Points, name: str) -> None:
    """Each page has its old or its new points; a kill amid a write leaves each point one of both.

    A page that moved is under its old name or under its new one.
    """
    for doc_id in {point[0]["doc_path"] for point in old.values()} - {MOVED[0]}:
        was, will_be = of_document(old, doc_id), of_document(new, doc_id)
        if not name.startswith("amid"):
            assert holds(found, was) or holds(found, will_be), name
        for key in was.keys() & will_be.keys():
            assert found[key] in (was[key], will_be[key]), name
    moved = holds(found, of_document(old, MOVED[0])) or holds(found, of_document(new, MOVED[1]))
    assert moved, name
    assert {point[0]["doc_path"] for point in found.values()} >= {EDITED}, name
    if ADDED not in {point[0]["doc_path"] for point in found.values()}:
        assert texts(found) <= texts(old) | texts(of_document(new, EDITED)), name


@pytest.mark.timeout(900)
@pytest.mark.parametrize("words", SCOPES)
def test_a_killed_first_ingest_is_made_whole(tmp_path: Path, words: list[str]) -> None:
    outcome = run_moments(tmp_path, "nothing", *words)
    names = [moment["name"] for moment in outcome["moments"]]
    assert any("catalog.create" in name for name in names)
    assert any("catalog.switch_to" in name for name in names)
    print()  # noqa: T201  # the table of moments, shown with -s
    for number, moment in enumerate(outcome["moments"]):
        print(f"{number:3} killed {moment['name']}: made whole")  # noqa: T201  # the same
        assert moment["status"] == KILLED
        assert moment["resumed"]["points"] == outcome["new"], moment["name"]
        assert moment["resumed"]["audit"] == [], moment["name"]
        assert moment["resumed"]["at_rest"], moment["name"]
