"""The write-ahead log of a SQLite file, which lets processes read while another one writes."""

from __future__ import annotations

import sqlite3

from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random


def use_write_ahead_log(connection: sqlite3.Connection, timeout_s: float) -> None:
    """Switch a file to a write-ahead log, if it has none.

    SQLite waits for other connections in all statements but this one: if two processes switch a
    new file at the same moment, one of them fails at once. So it is tried again.

    Args:
        connection: A connection without an open transaction.
        timeout_s: How long to try, in seconds.

    Raises:
        sqlite3.OperationalError: The file stayed locked for that time, or cannot be used.
    """
    attempts = Retrying(
        retry=retry_if_exception(_is_busy),
        wait=wait_random(0.005, 0.05),
        stop=stop_after_delay(timeout_s),
        reraise=True,
    )
    for attempt in attempts:
        with attempt:
            connection.execute("pragma journal_mode = wal").close()


def _is_busy(error: BaseException) -> bool:
    return (
        isinstance(error, sqlite3.OperationalError)
        and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY  # without the reason in high bits
    )
