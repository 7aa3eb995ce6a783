"""Tests of the numbers that a running ingestion publishes, between processes."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from rag_pipeline.adapters.state.running import announce_ingestion, read_running_ingestion
from rag_pipeline.core.protocols.state import IngestionProgress

if TYPE_CHECKING:
    from pathlib import Path

RUNNER = """
import sys
from pathlib import Path
from rag_pipeline.adapters.state.running import announce_ingestion
with announce_ingestion(Path(sys.argv[1])) as announce:
    announce(12, 35)
    print("announced", flush=True)
    sys.stdin.readline()
"""


def start_runner(state_dir: Path) -> subprocess.Popen[str]:
    """Start a process that has announced 12 of 35 documents."""
    runner = subprocess.Popen(
        [sys.executable, "-c", RUNNER, str(state_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert runner.stdout is not None
    assert runner.stdout.readline() == "announced\n"
    return runner


def test_no_ingestion_runs_in_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    assert read_running_ingestion(tmp_path / "missing") is None


def test_another_process_reads_how_far_an_ingestion_is(tmp_path: Path) -> None:
    runner = start_runner(tmp_path)
    assert read_running_ingestion(tmp_path) == IngestionProgress(12, 35)
    runner.communicate("\n")
    assert read_running_ingestion(tmp_path) is None


def test_a_killed_ingestion_does_not_count_as_running(tmp_path: Path) -> None:
    runner = start_runner(tmp_path)
    runner.kill()
    runner.communicate()
    assert (tmp_path / "ingesting.json").read_text().startswith('{"done": 12')
    assert read_running_ingestion(tmp_path) is None


def test_a_new_ingestion_never_shows_the_numbers_of_a_killed_one(tmp_path: Path) -> None:
    runner = start_runner(tmp_path)
    runner.kill()
    runner.communicate()
    with announce_ingestion(tmp_path) as announce:
        assert read_running_ingestion(tmp_path) == IngestionProgress(0, 0)
        announce(0, 3)
        assert read_running_ingestion(tmp_path) == IngestionProgress(0, 3)
