"""Tests of `rag-pipeline validate` on a small book: the files that it writes, and its errors."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING

from rag_pipeline.adapters.stores.edge_catalog import EdgeCatalog
from rag_pipeline.core.state_dirs import DATABASE_NAME
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
    assert record["performance"]["total_vectors"] == record["point_count"] > 0
    assert (record["doc_count"], record["findings"]) == (3, [])
    assert set(record["checks"].values()) == {0}


def test_a_point_that_differs_from_its_document_is_found(
    call: Callable[..., Outcome], command: Command
) -> None:
    collection_id = call("ingest", "--json").json["collection_id"]
    (root,) = (command.root / "data").glob("*/store/textbook_chunks")
    with closing(EdgeCatalog(root, "textbook_chunks", 1.0).open(collection_id)) as store:
        first, second, *_ = store.scroll()
        store.delete([first.point_id])
        store.set_payloads({second.point_id: second.payload | {"module": "altered"}})
    found = call("validate", "--json")
    assert (found.code, found.json["passed"], found.json["finding_count"]) == (1, False, 2)
    assert found.json["findings"] == call("audit", "--json").json["findings"]
    assert {one["kind"] for one in found.json["findings"]} == {"missing", "wrong_payload"}
    assert "FAIL  missing" in call("validate").out


def test_a_store_without_the_database_of_its_book_is_searched_but_not_audited(
    call: Callable[..., Outcome], command: Command
) -> None:
    assert call("ingest").code == 0
    (state,) = (command.root / "data").glob("docs-*/")
    for path in state.glob(f"{DATABASE_NAME}*"):
        path.unlink()
    record = call("validate", "--json").json
    assert (record["passed"], "missing" in record["checks"]) == (True, False)


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
