"""Tests of the ledger in both kinds of database."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.adapters.database.ledger import BookState
from rag_pipeline.adapters.database.sqlite import FileLocks, SqliteDatabase
from rag_pipeline.core.errors import LedgerConflictError
from rag_pipeline.core.ids import DocId
from rag_pipeline.core.models import SiteSettings
from rag_pipeline.core.site.addresses import RecordedSite
from rag_pipeline.core.sources import Source
from rag_pipeline_tests.ingestion.records import make_entry, make_failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_pipeline.core.protocols import Ledger

    Open = Callable[[], Ledger]

FIRST = replace(make_entry("a.md"), collection_id="build-1")
STORED = replace(FIRST, version=1)


@pytest.fixture
def open_ledger(open_state: Callable[[], BookState]) -> Open:
    """Return a function that opens one new ledger as another process would."""
    return lambda: open_state().open_ledger("build-1")


@pytest.mark.parametrize("doc_id", ["a.md", "module 1/größe.mdx", "x" * 900 + ".md", "a,b|c.md"])
def test_an_entry_can_be_read_back_for_any_document_id(open_ledger: Open, doc_id: str) -> None:
    entry = replace(FIRST, doc_id=DocId(doc_id))
    written = open_ledger().record(entry)
    assert written == replace(entry, version=1)
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


def test_the_recorded_site_can_be_read_back_by_another_process(open_ledger: Open) -> None:
    assert open_ledger().read_site() is None
    source = Source(name="api", folder=Path("../api"), prefix="api/", fallback=Path("../en"))
    for site in (
        RecordedSite(SiteSettings(base_url="https://a.example"), (source,)),
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
    def open_one() -> Ledger:
        locks = FileLocks(tmp_path / "locks")
        return BookState(SqliteDatabase(tmp_path / "a.sqlite"), "", locks, locks).open_ledger("b")

    ledger = open_one()
    ledger.record(replace(FIRST, chunk_count=0))
    fork = multiprocessing.get_context("fork")
    # The last one uses the connection of this process, which a forked process must not do.
    workers = [
        fork.Process(target=_count_up, args=(one,)) for one in (open_one(), open_one(), ledger)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    (entry,) = open_one().entries().values()
    assert (entry.chunk_count, entry.version) == (60, 61)


def test_books_and_builds_do_not_see_each_other(open_state: Callable[..., BookState]) -> None:
    open_state().open_ledger("build-1").record(FIRST)
    other_build, other_book = open_state().open_ledger("build-2"), open_state("other")
    assert (other_build.entries(), other_book.open_ledger("build-1").entries()) == ({}, {})
    open_state().drop_ledger("build-2")
    assert set(open_state().open_ledger("build-1").entries()) == {"a.md"}
    open_state().drop_ledger("build-1")
    assert open_state().open_ledger("build-1").entries() == {}


def test_entries_share_the_texts_that_most_of_them_have(open_ledger: Open) -> None:
    for doc_id in ("a.md", "b.md"):
        open_ledger().record(replace(FIRST, doc_id=DocId(doc_id)))
    one, other = open_ledger().entries().values()
    assert one.collection_id is other.collection_id
    assert one.run_id is other.run_id


@given(message=st.text())
def test_a_failure_record_can_contain_any_message(
    tmp_path_factory: pytest.TempPathFactory, message: str
) -> None:
    folder = tmp_path_factory.getbasetemp()
    locks = FileLocks(folder / "locks")
    state = BookState(SqliteDatabase(folder / "messages.sqlite"), "", locks, locks)
    failure = replace(make_failure("a.md"), message=message + "\0\ud83d")
    state.open_ledger("build-1").record_failure(failure)
    (stored,) = state.open_ledger("build-1").failures().values()
    assert stored.message == message.replace("\0", "\ufffd") + "\ufffd?"


def test_a_document_belongs_to_one_living_run(open_state: Callable[[], BookState]) -> None:
    mine, theirs = open_state(), open_state()
    doc_ids = [DocId(name) for name in ("a.md", "b.md", "c.md")]
    lock, other = mine.hold("mine"), theirs.hold("theirs")
    ledger = mine.open_ledger("build-1")
    ledger.record(FIRST)
    ledger.record_failure(make_failure("c.md"))
    assert ledger.claim(doc_ids[:2], "mine") == {"a.md", "b.md"}
    assert theirs.open_ledger("build-1").claim(doc_ids, "theirs") == {"c.md"}
    assert ledger.claim(doc_ids, "mine") == {"a.md", "b.md"}
    assert set(ledger.entries()) == {"a.md"}
    assert set(ledger.failures()) == {"c.md"}
    ledger.release("mine")
    assert theirs.open_ledger("build-1").claim(doc_ids, "theirs") == set(doc_ids)
    lock.release()
    other.release()


def test_the_claims_of_a_dead_run_can_be_taken_over(open_state: Callable[[], BookState]) -> None:
    dead = open_state()
    lock = dead.hold("dead")
    assert dead.open_ledger("build-1").claim([DocId("a.md")], "dead") == {"a.md"}
    lock.release()
    living = open_state()
    held = living.hold("living")
    assert living.open_ledger("build-1").claim([DocId("a.md")], "living") == {"a.md"}
    assert living.open_ledger("build-1").claim([], "living") == set()
    held.release()


def test_of_many_runs_that_claim_the_same_documents_each_gets_different_ones(
    open_state: Callable[[], BookState],
) -> None:
    doc_ids = [DocId(f"{number}.md") for number in range(20)]
    states = [open_state() for _ in range(4)]
    locks = [state.hold(str(number)) for number, state in enumerate(states)]
    states[0].open_ledger("build-1").entries()

    def claim(number: int) -> set[DocId]:
        return states[number].open_ledger("build-1").claim(doc_ids, str(number))

    with ThreadPoolExecutor(4) as pool:
        claimed = list(pool.map(claim, range(4)))
    assert sorted(doc_id for part in claimed for doc_id in part) == sorted(doc_ids)
    for lock in locks:
        lock.release()
