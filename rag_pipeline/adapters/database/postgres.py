"""A database on a Postgres server: its tables, and the locks that several machines share."""

from __future__ import annotations

import hashlib
import threading
import time
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from rag_pipeline.adapters.database import SCHEMA_VERSION, VERSION_TABLE, Connection, describe_cause
from rag_pipeline.core.errors import (
    ConfigurationError,
    DatabaseUnavailableError,
    StoreError,
    StoreLockedError,
    require_packages,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Iterator, Mapping

    from rag_pipeline.adapters.database import Values


_IN_PROCESS: Final = threading.Lock()  # alembic keeps its context in global variables
_ADVISORY_LOCK: Final = 7_206_511_020  # any number that other programs do not use


def migrate(engine: sa.Engine, place: str) -> None:
    """Bring the tables to the newest version, in one transaction.

    A lock in the database lets several processes call this at the same time.

    Args:
        engine: The database.
        place: Name of the database for error messages, without a password.

    Raises:
        StoreError: A newer version of this package has changed the tables.
        SQLAlchemyError: The database cannot be read or written.
    """
    config = Config()
    folder = Path(__file__).with_name("migrations")
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    with _IN_PROCESS, engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})"))
        table = {"version_table": VERSION_TABLE}
        stored = MigrationContext.configure(connection, opts=table).get_current_revision()
        if stored is not None and stored > SCHEMA_VERSION:
            raise StoreError(
                f"the tables of {place} have version {stored}, which a newer release of "
                f"rag-pipeline made; this release knows version {SCHEMA_VERSION}. Install the "
                "newer release, or choose another database"
            )
        if stored != SCHEMA_VERSION:
            config.attributes.update(connection=connection, **table)
            command.upgrade(config, "head")


def migrate_sqlite(connection: sqlite3.Connection, place: str) -> None:
    """Bring the tables of a SQLite file to the newest version; see `migrate`."""
    engine = sa.create_engine("sqlite://", creator=lambda: connection, poolclass=sa.StaticPool)

    @sa.event.listens_for(engine, "begin")
    def begin(started: sa.Connection) -> None:  # the driver itself begins no transaction
        started.exec_driver_sql("BEGIN IMMEDIATE")

    migrate(engine, place)


T = TypeVar("T")

_CONNECT_TIMEOUT_S: Final = 3
_IDLE_S, _INTERVAL_S, _PROBES = 30, 10, 3
_GONE_S: Final = _IDLE_S + _PROBES * _INTERVAL_S
_PAGE_ROWS: Final = 1_000
_LOOK_S: Final = 1.0  # between two looks at the connection of a lock
_SURE_S: Final = 20.0  # less than the 60 s after which the server ends a connection
_LOCK_NOT_AVAILABLE: Final = "55P03"  # the code of Postgres for a wait that was too long

# Both ends notice within a minute that the other is gone, for example after a power failure. The
# server's own default is two hours, for which the locks of a dead host would stay taken.
_CLIENT_LIMITS: Final = {
    "keepalives": 1,
    "keepalives_idle": _IDLE_S,
    "keepalives_interval": _INTERVAL_S,
    "keepalives_count": _PROBES,
    "tcp_user_timeout": _GONE_S * 1000,
}
_SERVER_LIMITS: Final = {
    "lock_timeout": "3s",
    "statement_timeout": "10s",
    "tcp_keepalives_idle": _IDLE_S,
    "tcp_keepalives_interval": _INTERVAL_S,
    "tcp_keepalives_count": _PROBES,
    "tcp_user_timeout": f"{_GONE_S}s",
}
_EXAMPLE: Final = "Example: postgresql://user:password@host/robotutor"  # pragma: allowlist secret
_HELD: Final = sa.text(
    "SELECT DISTINCT (classid::bigint << 32) | objid::bigint FROM pg_locks "
    "WHERE locktype = 'advisory' AND objsubid = 1 AND granted "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


def connect_postgres(setting: str, address: str) -> sa.Engine:
    """Return an engine for a Postgres database. No connection is opened before it is used.

    Args:
        setting: Name of the setting with the address, for the error message.
        address: Address of the database.

    Raises:
        ConfigurationError: The text is not the address of a Postgres database.
        MissingDependencyError: psycopg is not installed.
    """
    try:
        url = sa.make_url(address.strip())
    except (ArgumentError, ValueError):
        problem = "it is not the address of a database"
        raise ConfigurationError(setting, problem, _EXAMPLE) from None
    if url.drivername not in {"postgresql", "postgres", "postgresql+psycopg"}:
        raise ConfigurationError(setting, "only Postgres can be used here", _EXAMPLE)
    require_packages("postgres", "psycopg")
    return sa.create_engine(
        url.set(drivername="postgresql+psycopg"),
        connect_args={
            "connect_timeout": _CONNECT_TIMEOUT_S,
            "options": " ".join(f"-c {name}={value}" for name, value in _SERVER_LIMITS.items()),
            **_CLIENT_LIMITS,
        },
        pool_pre_ping=True,
        pool_timeout=_CONNECT_TIMEOUT_S,
        hide_parameters=True,
    )


class PostgresDatabase:
    """A `Database` on a Postgres server.

    Args:
        engine: The server's database.
        setting: Name of the setting with its address, for error messages.
    """

    def __init__(self, engine: sa.Engine, setting: str) -> None:
        self.engine = engine
        self.setting = setting
        self._is_open = False
        self._opening = threading.Lock()

    def read(self, action: Callable[[Connection], T]) -> T:
        """Return the result of a function that only reads."""
        return self.write(action)

    def write(self, action: Callable[[Connection], T], *, is_durable: bool = True) -> T:
        """Return the result of a function that changes the database in one transaction."""
        with describe_failures(f"the database at {self.setting} cannot be used", self.setting):
            with self._opening:
                if not self._is_open:
                    migrate(self.engine, self.setting)
                    self._is_open = True
            with self.engine.begin() as connection:
                if not is_durable:
                    connection.execute(sa.text("SET LOCAL synchronous_commit = off"))
                return action(_PostgresConnection(connection))

    def erase(self) -> None:
        """Do nothing: the server itself overwrites deleted rows and its log."""

    def compact(self) -> None:
        """Do nothing: the server itself gives the room of deleted rows back."""

    def close(self) -> None:
        """Close the connections; the next call opens them again."""
        self.engine.dispose()


class _PostgresConnection:
    """The interface `Connection` of a connection of SQLAlchemy."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def rows(self, statement: str, values: Mapping[str, Any] | None = None) -> Iterator[Any]:
        options = {"yield_per": _PAGE_ROWS}  # the server sends page by page
        found = self._connection.execute(
            sa.text(statement), values or {}, execution_options=options
        )
        with found:
            yield from found

    def change(self, statement: str, values: Values) -> int:
        if isinstance(values, list) and not values:
            return 0  # SQLAlchemy would execute the statement once
        return self._connection.execute(sa.text(statement), values).rowcount


class PostgresLocks:
    """The locks of a book on a Postgres server; see `ledger.Locks`.

    A held lock belongs to a connection of its own, so the server releases it when the process, its
    machine or its network dies.

    Args:
        database: The database.
        scope: Name of the state, equal on all machines.
    """

    def __init__(self, database: PostgresDatabase, scope: str) -> None:
        self._engine = database.engine
        self._setting = database.setting
        self._scope = scope

    @contextmanager
    def hold(self, name: str, timeout_s: float) -> Iterator[None]:
        """Hold the lock with a name during a `with` block."""
        with self.describe():
            connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        try:
            with self.describe():
                wait_ms = max(1, round(timeout_s * 1000))  # 0 would wait without a limit
                connection.execute(sa.text(f"SET lock_timeout = {wait_ms}"))
                connection.execute(sa.text("SET statement_timeout = 0"))
                try:
                    connection.execute(
                        sa.text("SELECT pg_advisory_lock(:key)"), {"key": self.make_key(name)}
                    )
                except SQLAlchemyError as error:
                    if getattr(getattr(error, "orig", None), "sqlstate", "") != _LOCK_NOT_AVAILABLE:
                        raise
                    waited = f"has held the lock `{name}` for {timeout_s:g} s"
                    held = waited if timeout_s else f"holds the lock `{name}`"
                    raise StoreLockedError(
                        f"another process, perhaps on another machine, {held}. Wait until that "
                        "ingest ends, or raise INGEST_LOCK_TIMEOUT_S"
                    ) from error
            yield
        finally:
            _end(connection)

    def watch(self, name: str) -> PostgresRunLock:
        """Take a lock that other processes can share, and return it."""
        return PostgresRunLock(self, self._engine, self.make_key(name))

    def find_held(self, names: Collection[str]) -> set[str]:
        """Return the names of the locks that a process on any machine holds."""
        with self.describe(), self._engine.connect() as connection:
            held = set(connection.execute(_HELD).scalars())
        return {name for name in names if self.make_key(name) in held}

    def make_key(self, name: str) -> int:
        """Return a signed number of 64 bits that stands for the lock."""
        digest = hashlib.sha256(f"rag-pipeline {self._scope} {name}".encode()).digest()
        return int.from_bytes(digest[:8], "big", signed=True)

    def describe(self) -> AbstractContextManager[None]:
        """Return a context manager that describes errors of the database."""
        problem = f"a lock at {self._setting} cannot be taken or read"
        return describe_failures(problem, self._setting)


class PostgresRunLock:
    """The held lock of a run, on a connection of its own; see `core.protocols.RunLock`.

    It is a shared lock, because several processes can work on one run and nobody has to wait.

    A thread looks at the connection each second. If the server restarts or the network fails, the
    lock is lost for a moment, and another run may take over the documents of this one. So `check`
    then ends the run before its next document. The thread still takes this lock again, because the
    run may write its last document for a while, and must not be marked as dead meanwhile.

    Raises:
        DatabaseUnavailableError: The database cannot be reached.
    """

    def __init__(self, locks: PostgresLocks, engine: sa.Engine, key: int) -> None:
        self._engine = engine
        self._key = key
        with locks.describe():
            self._connection: sa.Connection | None = self._take()
        self._seen_at = time.monotonic()
        self._was_lost = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="run-lock", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Check that the lock was held without a break."""
        # The thread is late if this process was stopped, or if the server does not answer. Both end
        # within a minute: with an answer, or with a lost connection.
        while not self._was_lost and self._is_late() and self._thread.is_alive():
            time.sleep(_LOOK_S / 10)
        if self._was_lost or self._is_late():
            raise DatabaseUnavailableError(
                "the connection with the lock of this run was lost, so another ingest may have "
                "begun. Check DATABASE_URL and that the server is running; the next ingest goes on"
            )

    def release(self) -> None:
        """Release the lock."""
        self._stopped.set()
        self._thread.join(timeout=_SURE_S)

    def _is_late(self) -> bool:
        return time.monotonic() - self._seen_at > _SURE_S

    def _take(self) -> sa.Connection:
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        try:
            connection.execute(sa.text("SELECT pg_advisory_lock_shared(:key)"), {"key": self._key})
        except BaseException:
            _end(connection)
            raise
        return connection

    def _watch(self) -> None:
        while not self._stopped.wait(_LOOK_S):
            try:
                if self._connection is None:
                    self._connection = self._take()
                else:
                    self._connection.execute(sa.text("SELECT 1"))
                self._seen_at = time.monotonic()
            except SQLAlchemyError:
                self._was_lost = True
                if self._connection is not None:
                    _end(self._connection)
                    self._connection = None
        if self._connection is not None:
            _end(self._connection)


@contextmanager
def describe_failures(problem: str, setting: str) -> Iterator[None]:
    """Raise a DatabaseUnavailableError in place of an error of the database in the block."""
    try:
        yield
    except SQLAlchemyError as error:
        advice = f"Check {setting} and that the server is running; the next ingest goes on"
        message = f"{problem}: {describe_cause(error)}. {advice}"
        raise DatabaseUnavailableError(message) from error


def _end(connection: sa.Connection) -> None:
    """Close a connection instead of returning it to the pool, which releases its locks."""
    connection.invalidate()
    connection.close()
