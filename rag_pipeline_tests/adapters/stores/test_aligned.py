"""Tests of processes that create and switch one collection at the same moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rag_pipeline_tests.adapters.database.databases import run_postgres
from rag_pipeline_tests.adapters.stores.aligned import create_aligned, switch_aligned

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture(params=["files", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Settings of a book with an embedded store, and with locks in files or in Postgres."""
    folders = {"docs_dir": tmp_path / "docs", "data_dir": tmp_path / "data"}
    if request.param == "files":
        yield folders
        return
    with run_postgres() as url:
        yield folders | {"database_url": url}


def test_aligned_first_creations_leave_one_collection_with_all_points(
    settings: dict[str, Any],
) -> None:
    assert create_aligned(settings, 4) == []


def test_aligned_switches_leave_one_current_collection_with_all_points(
    settings: dict[str, Any],
) -> None:
    assert switch_aligned(settings, 5) == []
