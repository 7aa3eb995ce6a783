"""Tests of the switch of a SQLite file to a write-ahead log."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.sqlite_wal import use_write_ahead_log

if TYPE_CHECKING:
    from pathlib import Path


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
