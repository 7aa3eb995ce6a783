"""Tests of `rag-pipeline validate` on a small book: the files that it writes, and its errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rag_pipeline_tests.end_to_end.command import Command, Outcome, assert_one_line

if TYPE_CHECKING:
    from collections.abc import Callable

FILES = ["VALIDATION_RESULTS.md", "VALIDATION_RESULTS.json", "PERFORMANCE_METRICS.json"]


def test_a_validation_writes_its_files_to_the_data_folder_and_prints_their_paths(
    call: Callable[..., Outcome], command: Command
) -> None:
    assert call("ingest").code == 0
    (data,) = (command.root / "data").glob("docs-*/")
    shown = call("validate")
    paths = [str(data / name) for name in FILES]
    assert shown.out.splitlines()[-3:] == [f"Written: {path}" for path in paths]
    machine = call("validate", "--json")
    assert machine.code == shown.code
    record = machine.json
    assert record.pop("files") == paths
    assert record == json.loads((data / FILES[1]).read_text("utf-8"))
    assert record["performance"] == json.loads((data / FILES[2]).read_text("utf-8"))
    assert record["performance"]["total_vectors"] == record["chunk_count"] > 0
    assert all(check["passed"] for check in record["checks"])


def test_without_a_collection_no_file_is_written(
    call: Callable[..., Outcome], command: Command
) -> None:
    assert_one_line(call("validate"), 1, "rag-pipeline ingest")
    assert not any(any((command.root / "data").rglob(name)) for name in FILES)


def test_a_data_folder_that_cannot_be_written_is_named_first(
    call: Callable[..., Outcome], command: Command
) -> None:
    assert call("ingest").code == 0
    (data,) = (command.root / "data").glob("docs-*/")
    (data / FILES[0]).mkdir()
    assert_one_line(call("validate"), 2, "DATA_DIR", FILES[0], "cannot be written")
