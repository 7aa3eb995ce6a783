"""Tests of the ledger and the locks in Postgres, which workers on several machines share."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from rag_pipeline.adapters.databases.postgres import connect_postgres, read_database_url
from rag_pipeline.adapters.state.ledgers import choose_ledgers
from rag_pipeline.adapters.state.postgres.ledger import PostgresLedger
from rag_pipeline.adapters.state.postgres.locks import hold_advisory_locks
from rag_pipeline.adapters.state.postgres.tables import RecordRow
from rag_pipeline.core.errors import (
    ConfigurationError,
    LedgerConflictError,
    LedgerUnavailableError,
    StoreLockedError,
)
from rag_pipeline.core.settings import load_settings
from rag_pipeline_tests.ingestion.records import make_entry

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Engine

pytestmark = pytest.mark.slow


def open_ledger(
    engine: Engine, collection_id: str = "build-1", name: str = "book"
) -> PostgresLedger:
    return PostgresLedger(engine, name, collection_id)


def test_books_and_builds_do_not_see_each_other(engine: Engine) -> None:
    open_ledger(engine).record(make_entry("a.md"))
    other_build, other_book = open_ledger(engine, "build-2"), open_ledger(engine, name="other")
    assert (other_build.entries(), other_book.entries()) == ({}, {})
    open_ledger(engine, "build-2").drop()
    assert set(open_ledger(engine).entries()) == {"a.md"}
    open_ledger(engine).drop()
    assert open_ledger(engine).entries() == {}


def test_a_row_of_another_format_counts_as_missing_and_is_discarded(engine: Engine) -> None:
    ledger = open_ledger(engine)
    ledger.record(make_entry("a.md"))
    ledger.record(make_entry("b.md"))
    with engine.begin() as connection:
        change = "UPDATE ledger_documents SET record = '{\"x\": 1}' WHERE doc_id = 'a.md'"
        connection.execute(sa.text(change))
    assert set(ledger.entries()) == {"b.md"}
    ledger.discard_damaged()
    with engine.begin() as connection:
        assert connection.execute(sa.text("SELECT count(*) FROM ledger_documents")).scalar() == 1


def test_rows_are_read_page_by_page_with_shared_texts(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_pipeline.adapters.state.postgres.ledger._PAGE_ROWS", 2)
    for number in range(5):
        open_ledger(engine).record(make_entry(f"{number}.md"))
    entries = open_ledger(engine).entries()
    assert sorted(entries) == [f"{number}.md" for number in range(5)]
    assert len({id(entry.run_id) for entry in entries.values()}) == 1


def test_of_many_runs_that_add_a_document_one_succeeds(engine: Engine) -> None:
    ledgers = [open_ledger(engine) for _ in range(8)]
    for ledger in ledgers:
        ledger.entries()
    conflicts: list[LedgerConflictError] = []

    def add(ledger: PostgresLedger, run: int) -> None:
        try:
            ledger.record(replace(make_entry("a.md"), run_id=str(run)))
        except LedgerConflictError as error:
            conflicts.append(error)

    threads = [
        threading.Thread(target=add, args=pair) for pair in zip(ledgers, range(8), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(conflicts) == 7


def test_tables_of_a_newer_version_are_refused(engine: Engine) -> None:
    open_ledger(engine).entries()
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE ledger_version SET version_num = '9999'"))
    with pytest.raises(LedgerUnavailableError, match=r"version 9999.* up to 0002") as caught:
        open_ledger(engine).entries()
    assert "-m pip install --upgrade 'rag-pipeline[postgres]'" in str(caught.value)


def test_tables_of_the_first_version_are_updated_and_keep_their_rows(engine: Engine) -> None:
    open_ledger(engine).record(make_entry("a.md"))
    with engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE ledger_books"))
        connection.execute(sa.text("UPDATE ledger_version SET version_num = '0001'"))
    assert RecordRow(engine, "book").read() is None
    assert set(open_ledger(engine).entries()) == {"a.md"}


def test_a_server_that_is_gone_is_named_without_its_password() -> None:
    address = "postgresql://tutor:hidden-word@127.0.0.1:1/rag"  # pragma: allowlist secret
    gone = connect_postgres("LEDGER_URL", read_database_url("LEDGER_URL", address, "x"), "x")
    with pytest.raises(LedgerUnavailableError, match="Check LEDGER_URL") as caught:
        open_ledger(gone).entries()
    assert "hidden-word" not in str(caught.value)


def test_the_book_excludes_its_buckets_and_buckets_exclude_only_themselves(engine: Engine) -> None:
    with hold_advisory_locks(engine, "book", [3, 1], 0.0):
        with (
            hold_advisory_locks(engine, "book", [2], 0.0),
            hold_advisory_locks(engine, "b", None, 0.0),
        ):
            pass
        with (
            pytest.raises(StoreLockedError, match=r"holds the lock of bucket 3 of the book"),
            hold_advisory_locks(engine, "book", [3], 0.0),
        ):
            pass
        with (
            pytest.raises(StoreLockedError, match=r"has held the lock of the book for 0\.1 s"),
            hold_advisory_locks(engine, "book", None, 0.1),
        ):
            pass
    with hold_advisory_locks(engine, "book", None, 0.0):
        pass


HOLDER = """
import sys, time
from rag_pipeline.adapters.databases.postgres import connect_postgres, read_database_url
from rag_pipeline.adapters.state.postgres.locks import hold_advisory_locks
url = read_database_url("LEDGER_URL", sys.argv[1], "x")
with hold_advisory_locks(connect_postgres("LEDGER_URL", url, "x"), "book", None, 5.0):
    print("held", flush=True)
    time.sleep(600)
"""


def test_the_server_releases_the_lock_of_a_killed_process(engine: Engine, address: str) -> None:
    command = [sys.executable, "-c", HOLDER, address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreLockedError), hold_advisory_locks(engine, "book", [1], 0.0):
            pass
        holder.kill()
    with hold_advisory_locks(engine, "book", [1], 30.0):  # until the server notices
        pass


def test_the_settings_choose_the_ledger(address: str, tmp_path: Path) -> None:
    places = {"docs_dir": tmp_path / "docs", "data_dir": tmp_path / "data"}
    settings = load_settings(**places, ledger_url=address, state_name="book")
    assert isinstance(choose_ledgers(settings, tmp_path, "c").open("c"), PostgresLedger)
    with pytest.raises(ConfigurationError, match=r"^STATE_NAME: it is needed with LEDGER_URL"):
        choose_ledgers(load_settings(**places, ledger_url=address), tmp_path, "c")
    with pytest.raises(ConfigurationError, match=r"^LEDGER_URL: only Postgres can be used"):
        choose_ledgers(
            load_settings(**places, ledger_url="sqlite:///x.db", state_name="book"), tmp_path, "c"
        )
