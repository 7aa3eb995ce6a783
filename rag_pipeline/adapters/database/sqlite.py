"""A database in one SQLite file, and the lock files beside it."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rag_pipeline.adapters.database import SCHEMA_VERSION, VERSION_TABLE, Connection, describe_cause
from rag_pipeline.adapters.local_files import hold_lock, is_damage, move_aside
from rag_pipeline.core.errors import StoreError, StoreLockedError, require_packages
from rag_pipeline.core.settings.file import warn_once

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from rag_pipeline.adapters.database import Values

T = TypeVar("T")

BUSY_TIMEOUT_S: Final = 30.0
"""Longest wait for another process that writes, in seconds. A transaction takes milliseconds."""

_RETRY_S: Final = 0.01
_CREATED_WITH: Final = "pipeline", "sqlalchemy", "alembic"  # an extra, and its packages for tables
_MEMORY: Final = "file::memory:"


class SqliteDatabase:
    """A `Database` in a SQLite file.

    A damaged file is renamed with a warning, and a new one is begun. A file that was deleted or
    replaced is opened again. In a folder that cannot be written, the file is only read.

    Args:
        path: The file. The file and its folder are created by the first use.
        timeout_s: Longest wait in seconds for another process that writes.
        begins_again: If False, a damaged file stays in its place, and its use is an error.
    """

    def __init__(
        self, path: Path, timeout_s: float = BUSY_TIMEOUT_S, *, begins_again: bool = True
    ) -> None:
        self.path = path
        self._timeout_s = timeout_s
        self._begins_again = begins_again
        self._lock = RLock()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, ...] | None = None

    def read(self, action: Callable[[Connection], T]) -> T:
        """Return the result of a function that only reads."""
        return self._run("", action)

    def write(self, action: Callable[[Connection], T], *, is_durable: bool = True) -> T:
        """Return the result of a function that changes the database in one transaction."""
        return self._run("full" if is_durable else "normal", action)

    def erase(self) -> None:
        """Empty the write-ahead log, which contains copies of deleted rows.

        Deleted rows of the file itself are overwritten. While another process reads an older state
        of the database, its log stays until a later call.
        """
        with suppress(StoreError):
            self._run("", lambda used: list(used.rows("pragma wal_checkpoint(truncate)")))

    def compact(self) -> None:
        """Give the room of deleted rows back to the disk."""
        self._run("", lambda used: list(used.rows("vacuum")))
        self.erase()

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _run(self, durability: str, action: Callable[[Connection], T]) -> T:
        with self._lock:
            try:
                try:
                    return self._transact(durability, action)
                except sqlite3.DatabaseError as error:
                    if not (self._begins_again and is_damage(error)):
                        raise
                    self._begin_again()
                    return self._transact(durability, action)
            except (sqlite3.Error, OSError) as error:
                raise StoreError(
                    f"the database {self.path} cannot be used: {describe_cause(error)}. Check disk "
                    "space and permissions"
                ) from error

    def _transact(self, durability: str, action: Callable[[Connection], T]) -> T:
        connection = self._open()
        if not durability:
            return action(_SqliteConnection(connection))
        connection.execute(f"pragma synchronous = {durability}").close()
        connection.execute("begin immediate")
        try:
            result = action(_SqliteConnection(connection))
            connection.execute("commit")
        except BaseException:
            with suppress(sqlite3.Error):  # which shows the first error again
                connection.execute("rollback")
            raise
        return result

    def _begin_again(self) -> None:
        self.close()
        warn_once(
            f"the database {self.path} is damaged. It was renamed to "
            f"{move_aside(self.path).name}. The next `rag-pipeline ingest` compares all documents "
            "with the store again, which embeds no text whose vectors the store has"
        )

    def _open(self) -> sqlite3.Connection:
        found = _identify(self.path)
        if self._connection is not None and found != self._file:
            self.close()
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        folder = self.path.parent
        if folder.is_dir() and not os.access(folder, os.W_OK):
            with _find_readable(self.path) as uri:
                return self._connect_to(uri, may_write=False)
        if not self.path.exists():
            require_packages(*_CREATED_WITH)  # before there is an empty file
        if self._file is None:  # a folder that was moved away later stays away
            folder.mkdir(parents=True, exist_ok=True)
        self.path.touch(mode=0o600)  # readers' questions are personal data
        return self._connect_to(str(self.path), may_write=True)

    def _connect_to(self, place: str, *, may_write: bool) -> sqlite3.Connection:
        connection = sqlite3.connect(
            place,
            timeout=self._timeout_s,
            uri=not may_write,
            check_same_thread=False,
            isolation_level=None,
        )
        try:
            if may_write:
                use_write_ahead_log(connection, self._timeout_s)
                for setting in ("foreign_keys = on", "secure_delete = on"):
                    connection.execute(f"pragma {setting}").close()
            if _read_version(connection) != SCHEMA_VERSION:
                require_packages(*_CREATED_WITH)
                from rag_pipeline.adapters.database.postgres import (  # noqa: PLC0415  # once
                    migrate_sqlite,
                )

                migrate_sqlite(connection, str(self.path))
            if not may_write:
                connection.execute("pragma query_only = on").close()
        except BaseException:
            connection.close()
            raise
        self._file = _identify(self.path)
        return connection


class _SqliteConnection:
    """The interface `Connection` of a connection to a SQLite file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, statement: str, values: Mapping[str, Any] | None = None) -> Iterable[Any]:
        return self._connection.execute(statement, values or {})

    def change(self, statement: str, values: Values) -> int:
        if isinstance(values, dict):
            return self._connection.execute(statement, values).rowcount
        return self._connection.executemany(statement, values).rowcount


class FileLocks:
    """The locks of a book as lock files in a folder; see `ledger.Locks`.

    The operating system releases the locks of a process that dies.

    Args:
        folder: The folder. It is created if it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def hold(self, name: str, timeout_s: float) -> AbstractContextManager[None]:
        """Return a context manager that holds the lock with a name."""
        return hold_lock(self._locate(name), timeout_s)

    def watch(self, name: str) -> FileRunLock:
        """Take a lock that other processes can share, and return it."""
        return FileRunLock(self._locate(name))

    def find_held(self, names: Collection[str]) -> set[str]:
        """Return the names of the locks that a process holds, and delete the files of others."""
        return {name for name in names if _is_held(self._locate(name))}

    def _locate(self, name: str) -> Path:
        digest = hashlib.sha256(name.encode()).hexdigest()[:16]
        return self._folder / f"{name.partition(' ')[0]}-{digest}.lock"


class FileRunLock:
    """A held lock file; see `core.protocols.RunLock`."""

    def __init__(self, path: Path) -> None:
        self._path, self._held = path, ExitStack()
        self._held.enter_context(hold_lock(path, BUSY_TIMEOUT_S, shared=True))

    def check(self) -> None:
        """Do nothing, because the lock of a file cannot get lost."""

    def release(self) -> None:
        """Release the lock, and delete its file unless another process shares it."""
        self._held.close()
        _is_held(self._path)


def _is_held(path: Path) -> bool:
    """Return True if a process holds a lock file. Otherwise the file is deleted."""
    if path.exists():
        try:
            with hold_lock(path, 0.0):
                path.unlink()
        except StoreLockedError:
            return True
    return False


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
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            connection.execute("pragma journal_mode = wal").close()
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY  # without the reason
            if not is_busy or time.monotonic() >= deadline:
                raise
            time.sleep(_RETRY_S)
        else:
            return


@contextmanager
def _find_readable(path: Path) -> Iterator[str]:
    """Yield the URI of a file that cannot be written, or of a copy, until it is open.

    SQLite reads such a file only as "immutable", without the write-ahead log that a killed process
    left. The changes in that log are added to a copy.
    """
    with ExitStack() as stack:
        log = path.with_name(f"{path.name}-wal")
        if path.exists() and log.exists() and log.stat().st_size:
            folder = stack.enter_context(TemporaryDirectory())
            for file in (path, log):
                copyfile(file, Path(folder, file.name))
            path = Path(folder, path.name)
            with closing(sqlite3.connect(path)) as connection:  # its end empties the log
                connection.execute("select 1 from sqlite_master").close()
        yield f"{path.resolve().as_uri()}?immutable=1" if path.exists() else _MEMORY


def _read_version(connection: sqlite3.Connection) -> str | None:
    """Return the version of the tables; None if there are no tables."""
    query = "select 1 from sqlite_master where type = 'table' and name = :name"
    with closing(connection.execute(query, {"name": VERSION_TABLE})) as found:
        if found.fetchone() is None:
            return None
    with closing(connection.execute(f"select version_num from {VERSION_TABLE}")) as found:
        row = found.fetchone()
    return row[0] if row else None


def _identify(path: Path) -> tuple[int, ...] | None:
    """Return numbers that identify a file in this process; None if the file is missing.

    A forked process must not use the connection of its parent.
    """
    try:
        state = path.stat()
    except FileNotFoundError:
        return None
    return os.getpid(), state.st_dev, state.st_ino
