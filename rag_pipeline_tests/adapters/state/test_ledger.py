"""Tests of the ledger in files. What all ledgers have in common is in `test_ledgers`."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.adapters.state.ledger import FileLedger
from rag_pipeline.core.buckets import bucket_of
from rag_pipeline.core.errors import StoreError
from rag_pipeline.core.ids import DocId, make_file_key
from rag_pipeline_tests.ingestion.records import make_entry, make_failure

if TYPE_CHECKING:
    from pathlib import Path


def test_an_empty_ledger_creates_no_folder(tmp_path: Path) -> None:
    ledger = FileLedger(tmp_path / "ledger")
    assert (ledger.entries(), ledger.failures()) == ({}, {})
    ledger.forget(DocId("never.md"), 0)
    assert not (tmp_path / "ledger").exists()


def test_an_entry_of_an_earlier_release_without_a_version_can_be_replaced(tmp_path: Path) -> None:
    ledger = FileLedger(tmp_path)
    ledger.record(make_entry("a.md"))
    (path,) = (tmp_path / "indexed").iterdir()
    stored = json.loads(path.read_text("utf-8"))
    del stored["version"]
    path.write_text(json.dumps(stored), encoding="utf-8")
    (entry,) = ledger.entries().values()
    assert ledger.record(entry).version == entry.version + 1


@given(message=st.text())
def test_a_failure_record_can_contain_any_message(
    tmp_path_factory: pytest.TempPathFactory, message: str
) -> None:
    ledger = FileLedger(tmp_path_factory.mktemp("ledger"))
    failure = replace(make_failure(), message=message + "\ud83d")
    ledger.record_failure(failure)
    assert ledger.failures() == {failure.doc_id: failure}


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b'{"doc_id": "a.md"}', b'{"x": 1}', b"\xff\x00", "number", "other"],
)
def test_a_damaged_entry_counts_as_missing_with_one_warning(
    tmp_path: Path, data: bytes | str, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = FileLedger(tmp_path)
    ledger.record(make_entry("b.md"))
    ledger.record(make_entry("a.md"))
    ledger.record_failure(make_failure("a.md"))
    path = tmp_path / "indexed" / f"{make_file_key(DocId('a.md'))}.json"
    if data == "number":
        data = (
            path.read_bytes()
            .replace(b'"chunk_count": ', b'"chunk_count": "')
            .replace(b',\n "run_id"', b'",\n "run_id"')
        )
    elif data == "other":
        data = (tmp_path / "indexed" / f"{make_file_key(DocId('b.md'))}.json").read_bytes()
    path.write_bytes(data)  # type: ignore[arg-type]  # the two names are replaced above
    assert [set(ledger.entries()) for _ in range(2)] == [{"b.md"}] * 2
    (message,) = caplog.messages
    assert path.name in message
    assert "rag-pipeline audit --repair" in message
    ledger.discard_damaged()
    assert not path.exists()
    assert set(ledger.entries()) == {"b.md"}
    assert set(ledger.failures()) == {"a.md"}


def test_a_worker_reads_only_the_files_of_its_buckets(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = FileLedger(tmp_path)
    for doc_id in ("a.md", "b.md"):
        ledger.record(make_entry(doc_id))
        ledger.record_failure(replace(make_failure(), doc_id=DocId(doc_id)))
    for kind in ("indexed", "failed"):
        (tmp_path / kind / f"{make_file_key(DocId('b.md'))}.json").write_bytes(b"damaged")
    buckets = [bucket_of("a.md")]
    assert (set(ledger.entries(buckets)), set(ledger.failures(buckets))) == ({"a.md"}, {"a.md"})
    assert caplog.text == ""


def test_a_file_that_no_ledger_wrote_is_reported_by_a_worker_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    FileLedger(tmp_path).record(make_entry("a.md"))
    (tmp_path / "indexed" / "notes.json").write_bytes(b"{}")
    assert set(FileLedger(tmp_path).entries([bucket_of("a.md")])) == {"a.md"}
    assert "notes.json is damaged" in caplog.text


def test_records_share_the_texts_that_most_of_them_have(tmp_path: Path) -> None:
    for doc_id in ("a.md", "b.md"):
        FileLedger(tmp_path).record(make_entry(doc_id))
    one, other = FileLedger(tmp_path).entries().values()
    assert one.collection_id is other.collection_id
    assert one.run_id is other.run_id


def test_a_folder_in_place_of_an_entry_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "indexed" / "a.json").mkdir(parents=True)
    with pytest.raises(StoreError, match=r"a\.json.*permissions"):
        FileLedger(tmp_path).entries()


def test_the_partial_file_of_a_killed_write_is_not_an_entry(tmp_path: Path) -> None:
    ledger = FileLedger(tmp_path)
    ledger.record(make_entry("a.md"))
    (path,) = (tmp_path / "indexed").iterdir()
    (tmp_path / "indexed" / f".{path.name}.x8d9").write_text("{")
    assert set(ledger.entries()) == {"a.md"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_write_permission_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OSError, match="denied"):
        FileLedger(tmp_path).record(make_entry())
