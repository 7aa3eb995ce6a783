"""Tests of the locks in Postgres by which all machines see that a run is alive."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from rag_pipeline.adapters.database.ledger import open_book_state
from rag_pipeline.adapters.database.postgres import (
    PostgresDatabase,
    PostgresLocks,
    connect_postgres,
)
from rag_pipeline.core.errors import DatabaseUnavailableError
from rag_pipeline.core.settings import load_settings
from rag_pipeline_tests.relay import Relay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sqlalchemy import Engine

    from rag_pipeline.adapters.database.postgres import PostgresRunLock

pytestmark = pytest.mark.slow

HOLDER = """
import sys, time
from rag_pipeline.adapters.database.postgres import *
database = PostgresDatabase(connect_postgres("DATABASE_URL", sys.argv[1]), "DATABASE_URL")
lock = PostgresLocks(database, "book").watch("run-1")
print("held", flush=True)
time.sleep(600)
"""


def open_locks(engine: Engine, name: str = "book") -> PostgresLocks:
    return PostgresLocks(PostgresDatabase(engine, "DATABASE_URL"), name)


@contextmanager
def hold(engine: Engine, run_id: str) -> Iterator[PostgresRunLock]:
    lock = open_locks(engine).watch(run_id)
    try:
        yield lock
    finally:
        lock.release()


def wait_until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def count_locks(engine: Engine) -> int:
    with engine.connect() as connection:
        statement = sa.text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
        return int(connection.execute(statement).scalar_one())


def end_connections(engine: Engine) -> None:
    """Let the server end all other connections that hold an advisory lock, and wait for it."""
    ended = "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks WHERE locktype = 'advisory'"
    with engine.connect() as connection:
        connection.execute(sa.text(ended))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_stopped_process_holds_its_lock_and_a_killed_one_does_not(
    engine: Engine, address: str, number: int
) -> None:
    locks = open_locks(engine)
    command = [sys.executable, "-c", HOLDER, address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        os.kill(holder.pid, signal.SIGSTOP)
        assert locks.find_held(["run-1"]) == {"run-1"}
        os.kill(holder.pid, number)
        os.kill(holder.pid, signal.SIGCONT)
    wait_until(lambda: not locks.find_held(["run-1"]))


def test_a_lost_lock_is_taken_again_but_ends_the_run(engine: Engine) -> None:
    locks = open_locks(engine)
    with hold(engine, "run-1") as lock:
        lock.check()
        end_connections(engine)
        wait_until(lambda: bool(locks.find_held(["run-1"])), 10.0)  # as long as others wait
        with pytest.raises(DatabaseUnavailableError, match="lock of this run was lost"):
            lock.check()


def test_a_lock_is_taken_again_after_the_database_was_unreachable(
    engine: Engine, address: str
) -> None:
    locks = open_locks(engine)
    with (
        Relay(address) as relay,
        hold(connect_postgres("DATABASE_URL", relay.url), "run-1") as lock,
    ):
        relay.cut()
        wait_until(lambda: not locks.find_held(["run-1"]))
        relay.restore()
        wait_until(lambda: bool(locks.find_held(["run-1"])), 10.0)
        with pytest.raises(DatabaseUnavailableError):
            lock.check()
    wait_until(lambda: not locks.find_held(["run-1"]))


def test_a_released_lock_leaves_no_thread_and_no_connection(engine: Engine) -> None:
    with hold(engine, "run-1"):
        assert "run-lock" in {thread.name for thread in threading.enumerate()}
    assert "run-lock" not in {thread.name for thread in threading.enumerate()}
    wait_until(lambda: count_locks(engine) == 0)


def test_both_ends_of_a_connection_notice_within_a_minute_that_the_other_is_gone(
    engine: Engine,
) -> None:
    names = ["keepalives_idle", "keepalives_interval", "keepalives_count", "user_timeout"]
    with engine.connect() as connection:
        found = [connection.execute(sa.text(f"SHOW tcp_{name}")).scalar() for name in names]
        driver = connection.connection.driver_connection
        assert driver is not None
        parameters = driver.info.get_parameters()
    assert found == ["30", "10", "3", "60000"]
    assert [parameters[name] for name in names[:3]] == ["30", "10", "3"]
    assert parameters["tcp_user_timeout"] == "60000"


def test_a_database_that_is_gone_is_an_error(tmp_path: Path) -> None:
    settings = load_settings(
        docs_dir=tmp_path / "docs",
        data_dir=tmp_path / "data",
        database_url="postgresql://tutor@127.0.0.1:1/rag",
        state_name="book",
    )
    locks = open_book_state(settings)
    with pytest.raises(DatabaseUnavailableError, match="Check DATABASE_URL"):
        locks.hold("run-1")
    with pytest.raises(DatabaseUnavailableError, match="Check DATABASE_URL"):
        locks.find_held(["run-1"])
