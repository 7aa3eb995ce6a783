"""Locks in Postgres that allow only one writer of a book at a time on all machines together."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from rag_pipeline.adapters.state.postgres.tables import describe_failures
from rag_pipeline.core.errors import StoreLockedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection, Engine

_WHOLE_BOOK: Final = -1  # no bucket has this number
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
    with describe_failures("the lock at LEDGER_URL cannot be taken"):
        connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    try:
        with describe_failures("the lock at LEDGER_URL cannot be taken"):
            wait_ms = max(_LEAST_WAIT_MS, round(timeout_s * 1000))
            connection.execute(sa.text(f"SET lock_timeout = {wait_ms}"))
            connection.execute(sa.text("SET statement_timeout = 0"))
            book = _number(state_name)
            if buckets is None:
                _lock(connection, "pg_advisory_lock", (book, _WHOLE_BOOK), timeout_s)
            else:
                _lock(connection, "pg_advisory_lock_shared", (book, _WHOLE_BOOK), timeout_s)
                for bucket in sorted(buckets):  # in one order, so that no two workers block
                    _lock(connection, "pg_advisory_lock", (book, bucket), timeout_s)
        yield
    finally:
        connection.invalidate()  # closes the connection, which releases its locks
        connection.close()


def _lock(connection: Connection, function: str, key: tuple[int, int], timeout_s: float) -> None:
    statement = sa.text(f"SELECT {function}(:book, :part)")
    try:
        connection.execute(statement, {"book": key[0], "part": key[1]})
    except OperationalError as error:
        origin: Any = error.orig
        if getattr(origin, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
            raise
        part = "the book" if key[1] == _WHOLE_BOOK else f"bucket {key[1]} of the book"
        held = f"has held the lock of {part} for {timeout_s:g} s"
        if not timeout_s:
            held = f"holds the lock of {part}"
        raise StoreLockedError(
            f"another process, perhaps on another machine, {held}. Wait until that ingest ends, or "
            "raise INGEST_LOCK_TIMEOUT_S"
        ) from error


def _number(state_name: str) -> int:
    """Return a signed number of 32 bits that stands for the name."""
    digest = hashlib.sha256(f"rag-pipeline {state_name}".encode()).digest()
    return int.from_bytes(digest[:4], "big", signed=True)
