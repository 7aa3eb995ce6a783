"""The contract of a ledger, which each implementation keeps."""

from __future__ import annotations

import multiprocessing
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from upath import UPath

from rag_pipeline.adapters.state.ledger import FileLedger
from rag_pipeline.adapters.state.postgres.ledger import PostgresLedger
from rag_pipeline.core.buckets import bucket_of
from rag_pipeline.core.errors import LedgerConflictError
from rag_pipeline.core.ids import DocId
from rag_pipeline.core.models import SiteSettings
from rag_pipeline.core.site.source_entries import RecordedSite
from rag_pipeline.core.sources import Source
from rag_pipeline_tests.ingestion.records import make_entry, make_failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_pipeline.core.protocols.state import Ledger

    Open = Callable[[], Ledger]

FIRST = make_entry("a.md")
STORED = replace(FIRST, version=1)


@pytest.fixture(
    params=["files", "objects", pytest.param("postgres", marks=pytest.mark.slow)],
)
def open_ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Return a function that opens one new ledger as another process would."""
    if request.param == "postgres":
        engine = request.getfixturevalue("engine")
        return lambda: PostgresLedger(engine, "book", "build-1")
    if request.param == "objects":
        root = UPath(f"memory://{uuid4().hex}")
        return lambda: FileLedger(root)
    return lambda: FileLedger(tmp_path / "ledger")


@pytest.mark.parametrize("doc_id", ["a.md", "module 1/größe.mdx", "x" * 900 + ".md", "a,b|c.md"])
def test_an_entry_can_be_read_back_for_any_document_id(open_ledger: Open, doc_id: str) -> None:
    written = open_ledger().record(make_entry(doc_id))
    assert written == replace(make_entry(doc_id), version=1)
    assert open_ledger().entries() == {written.doc_id: written}


def test_record_deletes_the_failure_and_record_begun_keeps_it(open_ledger: Open) -> None:
    ledger, failure = open_ledger(), make_failure("a.md", attempts=3)
    ledger.record_failure(failure)
    begun = ledger.record_begun(replace(FIRST, sha256=""))
    assert (ledger.entries(), ledger.failures()) == ({"a.md": begun}, {"a.md": failure})
    done = ledger.record(replace(FIRST, version=begun.version))
    assert (ledger.entries(), ledger.failures()) == ({"a.md": done}, {})
    assert done == replace(FIRST, version=2)


def test_recording_a_failure_keeps_the_entry(open_ledger: Open) -> None:
    ledger = open_ledger()
    ledger.record(FIRST)
    ledger.record_failure(make_failure("a.md"))
    ledger.record_failure(make_failure("a.md", attempts=2))
    assert ledger.entries() == {"a.md": STORED}
    assert ledger.failures() == {"a.md": make_failure("a.md", attempts=2)}


def test_forget_deletes_entry_and_failure_of_only_one_document(open_ledger: Open) -> None:
    ledger = open_ledger()
    for doc_id in ("a.md", "b.md"):
        ledger.record(make_entry(doc_id))
        ledger.record_failure(make_failure(doc_id))
    ledger.forget(DocId("a.md"), 1)
    ledger.forget(DocId("a.md"), 0)
    assert (set(ledger.entries()), set(ledger.failures())) == ({"b.md"}, {"b.md"})


def test_a_write_with_an_old_version_is_refused_and_changes_nothing(open_ledger: Open) -> None:
    ledger, stale = open_ledger(), open_ledger()
    ledger.record(FIRST)
    (read,) = stale.entries().values()
    now = ledger.record(replace(STORED, sha256="newer"))
    stale.record_failure(make_failure("a.md"))
    for write in (stale.record, stale.record_begun):
        with pytest.raises(LedgerConflictError, match=r"another process has changed.*ingest"):
            write(replace(read, sha256="older"))
    for version in (0, 1, 3):
        with pytest.raises(LedgerConflictError):
            stale.forget(DocId("a.md"), version)
    with pytest.raises(LedgerConflictError):
        open_ledger().record(FIRST)
    assert open_ledger().entries() == {"a.md": now}
    assert open_ledger().failures() == {"a.md": make_failure("a.md")}


def test_an_entry_that_another_process_deleted_is_not_written_again(open_ledger: Open) -> None:
    ledger, other = open_ledger(), open_ledger()
    written = ledger.record(FIRST)
    other.forget(DocId("a.md"), 1)
    with pytest.raises(LedgerConflictError):
        ledger.record(written)
    assert ledger.entries() == other.entries() == {}
    assert ledger.record(FIRST) == STORED


def test_a_ledger_can_load_some_buckets_only(open_ledger: Open) -> None:
    ledger, doc_ids = open_ledger(), [f"{number}.md" for number in range(9)]
    for doc_id in doc_ids:
        ledger.record(make_entry(doc_id))
        ledger.record_failure(make_failure(doc_id))
    buckets = {bucket_of(doc_id) for doc_id in doc_ids[:3]}
    wanted = {doc_id for doc_id in doc_ids if bucket_of(doc_id) in buckets}
    assert set(ledger.entries(buckets)) == set(ledger.failures(buckets)) == wanted
    assert ledger.entries(()) == ledger.failures(()) == {}
    assert set(ledger.entries()) == set(ledger.failures()) == set(doc_ids)


def test_the_recorded_site_can_be_read_back_by_another_process(open_ledger: Open) -> None:
    assert open_ledger().read_site() is None
    source = Source(name="api", folder=Path("../api"), prefix="api/", fallback=Path("../en"))
    for site in (
        RecordedSite(SiteSettings(base_url="https://a.example"), (source,)),
        RecordedSite(SiteSettings(), ()),
        RecordedSite(SiteSettings()),
    ):
        open_ledger().record_site(site)
        assert open_ledger().read_site() == site


def _count_up(ledger: Ledger) -> None:
    """Add 1 to the number of chunks of an entry 20 times, and again after each conflict."""
    for _ in range(20):
        while True:
            (entry,) = ledger.entries().values()
            with suppress(LedgerConflictError):
                ledger.record(replace(entry, chunk_count=entry.chunk_count + 1))
                break


def test_no_write_is_lost_if_several_processes_write_one_entry(tmp_path: Path) -> None:
    FileLedger(tmp_path).record(replace(FIRST, chunk_count=0))
    fork = multiprocessing.get_context("fork")
    workers = [fork.Process(target=_count_up, args=(FileLedger(tmp_path),)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    (entry,) = FileLedger(tmp_path).entries().values()
    assert (entry.chunk_count, entry.version) == (60, 61)
