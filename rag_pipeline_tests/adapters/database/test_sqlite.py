"""Tests of a database in a SQLite file that is new, shared, damaged or not writable."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.database.sqlite import SqliteDatabase, use_write_ahead_log
from rag_pipeline.core.errors import MissingDependencyError, StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.adapters.database import Connection


def test_the_switch_waits_until_another_process_has_written(tmp_path: Path) -> None:
    path, attempts = tmp_path / "new.sqlite", list[str]()
    with closing(sqlite3.connect(path)) as other, closing(sqlite3.connect(path)) as connection:
        other.execute("create table rows (number integer)")
        other.execute("begin immediate")

        def end_writing(statement: str) -> None:
            attempts.append(statement)
            if len(attempts) == 3:
                other.rollback()

        connection.set_trace_callback(end_writing)
        connection.execute("pragma busy_timeout = 0")
        attempts.clear()
        use_write_ahead_log(connection, timeout_s=60)
        assert len(attempts) >= 3
        assert connection.execute("pragma journal_mode").fetchone() == ("wal",)


def test_a_file_that_stays_locked_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "new.sqlite"
    with closing(sqlite3.connect(path)) as other, closing(sqlite3.connect(path)) as connection:
        other.execute("create table rows (number integer)")
        other.execute("begin exclusive")
        connection.execute("pragma busy_timeout = 0")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            use_write_ahead_log(connection, timeout_s=0.05)


def test_another_error_is_not_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "no.sqlite"
    path.write_bytes(b"This is not a database. " * 100)
    with (
        closing(sqlite3.connect(path)) as connection,
        pytest.raises(sqlite3.DatabaseError, match="not a database"),
    ):
        use_write_ahead_log(connection, timeout_s=60)


def read_one(database: SqliteDatabase) -> list[object]:
    return list(database.read(lambda used: list(used.rows("select collection from books"))))


def write_one(database: SqliteDatabase, collection: str) -> None:
    row = {"name": collection, "place": ""}
    database.write(
        lambda used: used.change("insert into books values (:name, :name, :place, :place)", row)
    )


def test_a_file_is_created_for_its_owner_only(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "new" / "state.sqlite")
    assert read_one(database) == []
    modes = {path.stat().st_mode & 0o077 for path in (tmp_path / "new").iterdir()}
    assert modes == {0}


def test_several_processes_create_the_tables_at_the_same_time(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from rag_pipeline.adapters.database.sqlite import SqliteDatabase
from rag_pipeline_tests.adapters.database.test_sqlite import write_one
write_one(SqliteDatabase(Path(sys.argv[1])), sys.argv[2])
"""
    path = tmp_path / "state.sqlite"
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(path), str(number)])
        for number in range(3)
    ]
    assert [one.wait() for one in started] == [0, 0, 0]
    assert len(read_one(SqliteDatabase(path))) == 3


def test_a_failed_change_is_undone_as_a_whole(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "state.sqlite")

    def fail(used: Connection) -> None:
        used.change("insert into books values ('a', 'a', '', '')", {})
        raise KeyError

    with pytest.raises(KeyError):
        database.write(fail)
    assert read_one(database) == []
    write_one(database, "b")
    assert read_one(database) == [("b",)]


def test_a_file_that_was_deleted_or_replaced_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    database = SqliteDatabase(path)
    write_one(database, "a")
    for file in tmp_path.iterdir():
        file.unlink()
    assert read_one(database) == []
    write_one(database, "b")
    other = SqliteDatabase(path)
    assert read_one(other) == [("b",)]
    other.close()
    database.close()


def test_a_damaged_file_is_kept_aside_while_two_processes_have_it_open(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "state.sqlite"
    first, second = SqliteDatabase(path), SqliteDatabase(path)
    write_one(first, "a")
    first.close()
    path.write_bytes(b"no database" * 2000)
    assert read_one(first) == []
    write_one(first, "b")
    assert read_one(second) == [("b",)]
    (aside,) = tmp_path.glob("state.sqlite.damaged-*T??????")
    assert aside.read_bytes().startswith(b"no database")
    assert caplog.text.count(aside.name) == 1


def test_a_file_without_one_of_its_tables_is_kept_aside_like_a_damaged_one(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    database = SqliteDatabase(path)
    write_one(database, "a")
    database.write(lambda used: used.change("drop table documents", {}))
    assert list(database.read(lambda used: list(used.rows("select doc_id from documents")))) == []
    (aside,) = tmp_path.glob("state.sqlite.damaged-*T??????")
    database.close()
    with closing(sqlite3.connect(aside)) as kept:
        assert kept.execute("select count(*) from books").fetchone() == (1,)


def test_without_the_packages_that_create_tables_no_empty_file_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.sqlite"
    monkeypatch.setattr("rag_pipeline.core.errors.find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match=r"rag-pipeline\[pipeline\]"):
        read_one(SqliteDatabase(path))
    assert not path.exists()
    path.touch()  # as a process leaves it that is killed before it creates the tables
    with pytest.raises(MissingDependencyError):
        read_one(SqliteDatabase(path))


def test_a_folder_that_cannot_be_written_is_only_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.sqlite"
    database = SqliteDatabase(path)
    write_one(database, "a")
    database.close()
    monkeypatch.setattr("os.access", lambda place, _: place != tmp_path)
    assert read_one(SqliteDatabase(path)) == [("a",)]
    assert [file.name for file in tmp_path.iterdir()] == ["state.sqlite"]
    assert read_one(SqliteDatabase(tmp_path / "missing.sqlite")) == []
    with pytest.raises(StoreError, match="readonly"):
        write_one(SqliteDatabase(path), "b")


def test_what_a_killed_process_wrote_last_is_read_in_a_folder_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, folder = tmp_path / "state.sqlite", tmp_path / "copied"
    writer = SqliteDatabase(path)
    write_one(writer, "a")
    shutil.copytree(tmp_path, folder)  # before the log is written into the file
    writer.close()
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    monkeypatch.setattr("os.access", lambda place, _: place != folder)
    database = SqliteDatabase(folder / "state.sqlite")
    assert read_one(database) == [("a",)]
    assert read_one(database) == [("a",)]
    database.close()
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_a_file_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    database = SqliteDatabase(path)
    database.write(lambda used: used.change("update rag_pipeline_version set version_num='9'", {}))
    database.close()
    with pytest.raises(StoreError, match=r"version 9.* newer release"):
        read_one(SqliteDatabase(path))


def test_a_file_that_another_process_writes_is_an_error_after_the_timeout(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    database = SqliteDatabase(path, timeout_s=0.05)
    write_one(database, "a")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin immediate")
        with pytest.raises(StoreError, match="locked"):
            write_one(database, "b")
        assert read_one(database) == [("a",)]
        other.execute("rollback")
    write_one(database, "b")
    assert read_one(database) == [("a",), ("b",)]


def test_creating_tables_is_the_only_use_of_sqlalchemy(tmp_path: Path) -> None:
    write_one(SqliteDatabase(tmp_path / "state.sqlite"), "a")
    code = """
import sys
from pathlib import Path
from rag_pipeline.adapters.database.ledger import BookState
from rag_pipeline.adapters.database.sqlite import FileLocks, SqliteDatabase
locks = FileLocks(Path(sys.argv[1]) / "locks")
state = BookState(SqliteDatabase(Path(sys.argv[1]) / "state.sqlite"), "", locks, locks)
assert state.open_ledger("b").entries() == {} and state.read_progress() is None
assert not {"sqlalchemy", "alembic"} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
