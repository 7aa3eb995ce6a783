"""Locks in Postgres that allow only one writer of a book at a time on all machines together."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from rag_pipeline.adapters.state.postgres.tables import describe_failures
from rag_pipeline.core.errors import LedgerUnavailableError, StoreLockedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection, Engine

_WHOLE: Final = -1  # no bucket has this number
_PROBLEM: Final = "the lock at LEDGER_URL cannot be taken"
_LOCK_NOT_AVAILABLE: Final = "55P03"  # the code of Postgres for a wait that was too long
_LEAST_WAIT_MS: Final = 1  # 0 would wait without a limit


@contextmanager
def hold_advisory_locks(
    engine: Engine, state_name: str, buckets: Sequence[int] | None, timeout_s: float
) -> Iterator[None]:
    """Hold the lock of a book, or of some of its buckets, for the duration of a `with` block.

    Workers with other buckets can hold their locks at the same time. The locks belong to a
    connection of their own, so the server releases them when the process or its network dies.

    Args:
        engine: The Postgres database.
        state_name: Name of the book's state, equal on all machines.
        buckets: Numbers of the buckets; None for the whole book.
        timeout_s: Longest time in seconds to wait for each lock.

    Raises:
        StoreLockedError: Another process held one of the locks during the whole wait.
        LedgerUnavailableError: The database cannot be reached.
    """
    book = _number(f"rag-pipeline {state_name}")
    with _connect(engine, timeout_s) as connection:
        if buckets is None:
            _lock(connection, (book, _WHOLE), timeout_s, "the book")
        else:
            _lock(connection, (book, _WHOLE), timeout_s, "the book", "pg_advisory_lock_shared")
            for bucket in sorted(buckets):  # in one order, so that no two workers block
                _lock(connection, (book, bucket), timeout_s, f"bucket {bucket} of the book")
        yield


@contextmanager
def hold_collection_lock(engine: Engine, collection: str, timeout_s: float) -> Iterator[None]:
    """Hold the lock of the collection with a name, like `hold_advisory_locks`.

    Processes hold it while they create, switch or delete builds, whatever book they index.
    """
    key = (_number(f"rag-pipeline collection {collection}"), _WHOLE)
    with _connect(engine, timeout_s) as connection:
        _lock(connection, key, timeout_s, f"the collection {collection}")
        yield


@contextmanager
def hold_submission_lock(engine: Engine, state_name: str, timeout_s: float) -> Iterator[None]:
    """Hold the lock with which one process at a time submits runs of a book.

    It does not affect the runs. See `hold_advisory_locks` for the arguments and errors.
    """
    key = (_number(f"rag-pipeline submission {state_name}"), _WHOLE)
    with _connect(engine, timeout_s) as connection:
        _lock(connection, key, timeout_s, "the submission of runs")
        yield


@contextmanager
def _connect(engine: Engine, timeout_s: float) -> Iterator[Connection]:
    """Yield a connection whose locks end with the block, or with the process or its network."""
    with describe_failures(_PROBLEM):
        connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    try:
        with describe_failures(_PROBLEM):
            wait_ms = max(_LEAST_WAIT_MS, round(timeout_s * 1000))
            connection.execute(sa.text(f"SET lock_timeout = {wait_ms}"))
            connection.execute(sa.text("SET statement_timeout = 0"))
        yield connection
    finally:
        end_connection(connection)


def end_connection(connection: Connection) -> None:
    """Close a connection instead of returning it to the pool, which releases its locks."""
    connection.invalidate()
    connection.close()


def _lock(
    connection: Connection,
    key: tuple[int, int],
    timeout_s: float,
    part: str,
    function: str = "pg_advisory_lock",
) -> None:
    statement = sa.text(f"SELECT {function}(:book, :part)")
    try:
        with describe_failures(_PROBLEM):
            connection.execute(statement, {"book": key[0], "part": key[1]})
    except LedgerUnavailableError as error:
        cause: Any = error.__cause__
        if getattr(getattr(cause, "orig", None), "sqlstate", None) != _LOCK_NOT_AVAILABLE:
            raise
        held = f"has held the lock of {part} for {timeout_s:g} s"
        if not timeout_s:
            held = f"holds the lock of {part}"
        raise StoreLockedError(
            f"another process, perhaps on another machine, {held}. Wait until that ingest ends, or "
            "raise INGEST_LOCK_TIMEOUT_S"
        ) from error


def _number(name: str) -> int:
    """Return a signed number of 32 bits that stands for the name."""
    digest = hashlib.sha256(name.encode()).digest()
    return int.from_bytes(digest[:4], "big", signed=True)
