"""Tests of the state of a book: its locks, running ingestions and the record of the book."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from rag_pipeline.adapters.connect import connect_services, read_running_ingestion
from rag_pipeline.adapters.database.ledger import open_book_state
from rag_pipeline.adapters.database.postgres import PostgresDatabase, connect_postgres
from rag_pipeline.core.errors import (
    ConfigurationError,
    DatabaseUnavailableError,
    StoreError,
    StoreLockedError,
)
from rag_pipeline.core.protocols import IngestionProgress
from rag_pipeline.core.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sqlalchemy import Engine

    from rag_pipeline.adapters.database.ledger import BookState
    from rag_pipeline.core.settings import Settings

HOLDER = """
import os, sys
from rag_pipeline.adapters.database.ledger import open_book_state
from rag_pipeline.core.settings import load_settings
state = open_book_state(load_settings(_env_file=""))
with state.locks.hold("book", 5.0), state.announce() as announce:
    announce(12, 35)
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def chosen(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """Settings of a book with each kind of database."""
    place: dict[str, str] = {}
    if request.param == "postgres":
        request.getfixturevalue("engine")  # empties the database
        place = {"database_url": request.getfixturevalue("address"), "state_name": "book"}
    return make_settings(tmp_path, **place)


def make_settings(folder: Path, **values: object) -> Settings:
    return load_settings(
        _env_file="",
        **{"docs_dir": folder / "docs", "data_dir": folder / "data"} | values,
    )


def start_holder(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> subprocess.Popen[str]:
    """Start a process that holds the lock of the book and has announced 12 of 35 documents."""
    for name in ("docs_dir", "data_dir", "database_url", "state_name"):
        monkeypatch.setenv(name.upper(), str(getattr(settings, name)))
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_a_lock_excludes_all_others_of_its_name(open_state: Callable[..., BookState]) -> None:
    mine, theirs = open_state().locks, open_state().locks
    with mine.hold("book", 0.0):
        with pytest.raises(StoreLockedError, match=r"holds the lock"), theirs.hold("book", 0.0):
            pass
        with theirs.hold("other", 0.0), open_state("another").locks.hold("book", 0.0):
            pass
    with (
        mine.hold("book", 30.0),  # until the server notices
        pytest.raises(StoreLockedError, match=r"held the lock .* for 0\.1 s.*INGEST_LOCK_TIMEOUT"),
        theirs.hold("book", 0.1),
    ):
        pass
    with pytest.raises(KeyError), mine.hold("book", 30.0):
        raise KeyError
    with theirs.hold("book", 30.0):
        pass


def test_runs_with_a_living_process_are_found(open_state: Callable[..., BookState]) -> None:
    state, other = open_state(), open_state()
    first, second, again = state.hold("1"), state.hold("2"), other.hold("2")
    first.check()
    assert other.find_held(["1", "2", "3"]) == {"1", "2"}
    assert open_state("another").find_held(["1"]) == set()
    first.release()
    second.release()
    while other.find_held(["1"]):
        pass  # until the server notices
    assert other.find_held(["1", "2", "3"]) == {"2"}
    again.release()
    while other.find_held(["2"]):
        pass


def test_another_process_reads_how_far_an_ingestion_is(
    chosen: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = open_book_state(chosen)
    assert state.read_progress() is None
    with start_holder(chosen, monkeypatch) as holder:
        assert state.read_progress() == IngestionProgress(12, 35)
        with state.announce() as announce:
            announce(1, 2)
            assert state.read_progress() == IngestionProgress(13, 37)
        assert state.read_progress() == IngestionProgress(12, 35)
        with pytest.raises(StoreLockedError), state.locks.hold("book", 0.0):
            pass
        holder.communicate("\n")
    assert state.read_progress() is None
    state.database.close()


def test_a_killed_process_holds_no_lock_and_its_ingestion_does_not_run(
    chosen: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = open_book_state(chosen)
    with start_holder(chosen, monkeypatch) as holder:
        holder.kill()
    with state.locks.hold("book", 30.0):  # until the server notices
        assert state.read_progress() is None
        with state.announce():
            assert state.read_progress() == IngestionProgress(0, 0)
    rows = state.database.read(lambda used: list(used.rows("select * from runs")))
    assert rows == []
    state.database.close()


def test_questions_read_the_progress_without_creating_a_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_settings(tmp_path)
    assert read_running_ingestion(settings) is None
    assert not settings.data_dir.exists()
    with start_holder(settings, monkeypatch) as holder:
        assert read_running_ingestion(settings) == IngestionProgress(12, 35)
        holder.communicate("\n")


def test_a_state_name_that_belongs_to_another_collection_is_refused(
    address: str, engine: Engine, tmp_path: Path
) -> None:
    place = {"database_url": address, "state_name": "book", "embedding_provider": "local"}
    del engine  # which has emptied the database

    def hold_lock(**values: str) -> None:
        services = connect_services(make_settings(tmp_path, **place | values))
        try:
            with services.lock():
                pass
        finally:
            services.cache.close()

    hold_lock()
    other = {"qdrant_collection": "second_book"}
    with pytest.raises(
        ConfigurationError, match=r"^STATE_NAME: .*collection textbook_chunks, but QDRANT_COLL"
    ):
        hold_lock(**other)
    for values in (
        other | {"state_name": "second"},
        {"qdrant_collection": "textbook_chunks-sweep-0123abcd"},
        {},
    ):
        hold_lock(**values)


def test_a_state_in_data_dir_may_have_several_collections(tmp_path: Path) -> None:
    for name in ("one", "two"):
        settings = make_settings(tmp_path, qdrant_collection=name, embedding_provider="local")
        with connect_services(settings).lock():
            pass


def test_a_database_url_needs_a_state_name_and_postgres(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^STATE_NAME: it is needed with DATABASE_URL"):
        open_book_state(make_settings(tmp_path, database_url="postgresql://host/rag"))
    for url, problem in (("sqlite:///x.db", "only Postgres"), ("no url", "not the address")):
        with pytest.raises(ConfigurationError, match=rf"^DATABASE_URL: .*{problem}"):
            open_book_state(make_settings(tmp_path, database_url=url, state_name="book"))


@pytest.mark.parametrize("name", ["a/b", "../up", ".hidden", "two words", "x" * 101])
def test_a_name_of_the_state_that_is_not_simple_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^STATE_NAME: .*letters, digits"):
        make_settings(tmp_path, state_name=name)


def test_a_server_that_is_gone_is_named_without_its_password(tmp_path: Path) -> None:
    url = "postgresql://tutor:hidden-word@127.0.0.1:1/rag"  # pragma: allowlist secret
    state = open_book_state(make_settings(tmp_path, database_url=url, state_name="book"))
    with pytest.raises(DatabaseUnavailableError, match="Check DATABASE_URL") as caught:
        state.open_ledger("build").entries()
    assert "hidden-word" not in str(caught.value)


@pytest.mark.slow
def test_tables_of_a_newer_release_are_refused(engine: Engine, address: str) -> None:
    PostgresDatabase(engine, "DATABASE_URL").read(lambda used: used)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE rag_pipeline_version SET version_num = '9999'"))
    opened = PostgresDatabase(connect_postgres("DATABASE_URL", address), "DATABASE_URL")
    with pytest.raises(StoreError, match=r"version 9999.* newer release.* version 0001"):
        opened.read(lambda used: used)
    opened.close()


@pytest.mark.slow
def test_many_rows_are_read_page_by_page(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_pipeline.adapters.database.postgres._PAGE_ROWS", 2)
    database = PostgresDatabase(engine, "DATABASE_URL")
    rows = database.read(lambda used: list(used.rows("select generate_series(1, 5)")))
    assert [row[0] for row in rows] == [1, 2, 3, 4, 5]
