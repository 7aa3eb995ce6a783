"""Tests of the view of detached runs, and of the settings that workers get."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

from rag_pipeline.cli.parallel import describe_following, export_settings
from rag_pipeline.core.settings import load_settings
from rag_pipeline.orchestration.submitting import Following

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

HALF = Following(
    runs_done=2,
    runs_running=1,
    run_count=4,
    runs_failed=0,
    docs_done=20,
    docs_planned=40,
    docs_failed=0,
    docs_timed=20,
    elapsed_s=10.0,
)


def test_the_view_says_what_is_done_how_fast_and_how_long_the_rest_takes() -> None:
    assert describe_following(HALF) == (
        "2 of 4 buckets done, 1 running; 20 of 40 documents, 2.0/s; about 10 s left"
    )


def test_the_rate_does_not_count_runs_that_had_begun_before_the_view() -> None:
    first = dataclasses.replace(HALF, docs_timed=0, elapsed_s=0.5)
    assert describe_following(first) == "2 of 4 buckets done, 1 running; 20 of 40 documents"
    second = dataclasses.replace(HALF, docs_timed=5)
    assert "20 of 40 documents, 0.5/s; about 40 s left" in describe_following(second)


def test_the_view_names_failures_and_a_daemon_that_does_not_run() -> None:
    failed = dataclasses.replace(HALF, runs_failed=1, docs_failed=3)
    assert "1 runs and 3 documents failed" in describe_following(failed)
    waiting = Following(0, 0, 4, 0, 0, 40, 0, 0, 31.0)
    assert "is the Dagster daemon running" in describe_following(waiting)
    assert waiting.left_s is None
    assert "nothing to index" in describe_following(Following(0, 0, 0, 0, 0, 0, 0, 0, 0.0))


def test_workers_get_the_book_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = {"name": "docs", "folder": str(tmp_path / "guide"), "prefix": "guide/"}
    settings = load_settings(
        docs_dir=tmp_path / "docs",
        data_dir=tmp_path / "data",
        site_base_url="https://book.example.org/",
        site_trailing_slash=True,
        sources=json.dumps([source]),
    )
    for name in ("DOCS_DIR", "DATA_DIR", "SOURCES", "STORE_LOCK_TIMEOUT_S"):
        monkeypatch.setenv(name, "")
    for name in ("BASE_URL", "ROUTE_BASE_PATH", "TRAILING_SLASH", "MARKDOWN_FORMAT"):
        monkeypatch.setenv(f"SITE_{name}", "")
    export_settings(settings)
    found = load_settings()
    assert (found.docs_dir, found.data_dir) == (settings.docs_dir, settings.data_dir)
    assert (found.site_base_url, found.site_trailing_slash) == ("https://book.example.org/", True)
    assert found.sources == settings.sources
    assert found.store_lock_timeout_s == 600
