"""The state of one book: its database, with ledgers, vectors and running ingestions, and its locks.

It is a SQLite file in the book's folder below DATA_DIR, or a Postgres database that several
machines share.
"""

# ruff: noqa: PLC0415  # Postgres needs SQLAlchemy, whose import takes long

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol
from uuid import uuid4

from rag_pipeline.adapters.database.connecting import require_packages
from rag_pipeline.adapters.database.ledger import SqlLedger
from rag_pipeline.adapters.database.sqlite import BUSY_TIMEOUT_S, FileLocks, SqliteDatabase
from rag_pipeline.core.errors import ConfigurationError, StoreError
from rag_pipeline.core.protocols.state import IngestionProgress
from rag_pipeline.core.state_dirs import DATABASE_NAME

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from rag_pipeline.adapters.database.connecting import Database
    from rag_pipeline.core.protocols.state import Announce, RunLock
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.core.site.source_entries import RecordedSite

_SETTING: Final = "DATABASE_URL"
_RUN: Final = "run "
_PROGRESS: Final = "progress "
_ANNOUNCE: Final = """
insert into runs (state_name, run_id, done, total) values (:state_name, :run_id, :done, :total)
on conflict (state_name, run_id) do update set done = excluded.done, total = excluded.total
"""
_END: Final = "delete from runs where state_name = :state_name and run_id = :run_id"
_RECORD: Final = """
insert into books (state_name, collection, docs_dir, data_dir)
values (:state_name, :collection, :docs_dir, :data_dir)
on conflict (state_name) do update set docs_dir = excluded.docs_dir, data_dir = excluded.data_dir
"""


class Locks(Protocol):
    """Named locks of a book. They end with the process that holds them."""

    def hold(
        self, name: str, timeout_s: float, *, shared: bool = False
    ) -> AbstractContextManager[None]:
        """Return a context manager that holds a lock.

        Args:
            name: Name of the lock.
            timeout_s: Longest time in seconds to wait for the lock.
            shared: Let other processes hold the lock at the same time, if they share it too.

        Raises:
            StoreLockedError: Another process held the lock during the whole wait.
            StoreError: The lock cannot be taken.
        """

    def watch(self, name: str) -> RunLock:
        """Take a lock that other processes can share, and return it."""

    def find_held(self, names: Collection[str]) -> set[str]:
        """Return the names of the locks that a process holds."""


@dataclass(frozen=True, slots=True)
class BookState:
    """The database and the locks of one book.

    Attributes:
        database: The database.
        state_name: Name of the book's state in the database; empty in a file of its own.
        locks: The locks of the book.
        collection_locks: The locks of collections, which books in one database share.
    """

    database: Database
    state_name: str
    locks: Locks
    collection_locks: Locks

    def hold(self, run_id: str) -> RunLock:
        """Take the lock of a run, and return it; see `core.protocols.state.RunLocks`."""
        return self.locks.watch(_RUN + run_id)

    def find_held(self, run_ids: Collection[str]) -> set[str]:
        """Return those of the runs whose lock a process holds."""
        held = self.locks.find_held([_RUN + run_id for run_id in run_ids])
        return {run_id for run_id in run_ids if _RUN + run_id in held}

    def open_ledger(self, collection_id: str) -> SqlLedger:
        """Return the ledger of a build."""
        return SqlLedger(self.database, self.state_name, collection_id, self.find_held)

    def drop_ledger(self, collection_id: str) -> None:
        """Delete the ledger of a build."""
        self.open_ledger(collection_id).drop()

    def read_site(self, collection_id: str) -> RecordedSite | None:
        """Return the site for which the links of a build were made; None if it is not known."""
        return self.open_ledger(collection_id).read_site()

    @contextmanager
    def announce(self) -> Iterator[Announce]:
        """Yield a function that tells other processes how many documents are indexed."""
        run_id = uuid4().hex

        def announce(done: int, total: int) -> None:
            row = {"state_name": self.state_name, "run_id": run_id, "done": done, "total": total}
            self.database.write(lambda used: used.change(_ANNOUNCE, row), is_durable=False)

        lock = self.locks.watch(_PROGRESS + run_id)
        try:
            self._end_dead_announcements()
            announce(0, 0)
            yield announce
        finally:
            lock.release()
            # A server may see the lock as held for a moment after it was released.
            with suppress(StoreError):  # the next ingestion deletes the row too
                self._end_announcements([run_id])
                self._end_dead_announcements()

    def read_progress(self) -> IngestionProgress | None:
        """Return how far the running ingestions of the book are; None if no ingestion is running.

        The total is 0 as long as no ingestion has counted its documents.
        """
        living = [row for row, is_living in self._read_announcements() if is_living]
        if not living:
            return None
        return IngestionProgress(sum(row[1] for row in living), sum(row[2] for row in living))

    def record_book(self, collection: str, docs_dir: Path, data_dir: Path) -> None:
        """Record the collection of the book, and where its docs folder and DATA_DIR are.

        Raises:
            ConfigurationError: The name of the state belongs to another collection.
        """
        query = "select collection, docs_dir, data_dir from books where state_name = :state_name"
        places = str(docs_dir.resolve()), str(data_dir.resolve())
        row = dict(zip(("collection", "docs_dir", "data_dir"), (collection, *places), strict=True))
        row["state_name"] = self.state_name
        found = self.database.read(lambda used: [tuple(one) for one in used.rows(query, row)])
        if found and self.state_name and found[0][0] != collection:
            raise ConfigurationError(
                "STATE_NAME",
                f"the state with this name belongs to the collection {found[0][0]}, but "
                f"QDRANT_COLLECTION is {collection}",
                "Give each book, and each new collection of a book, a STATE_NAME of its own",
            )
        if not found or found[0][1:] != places:
            self.database.write(lambda used: used.change(_RECORD, row))

    def _read_announcements(self) -> list[tuple[tuple[str, int, int], bool]]:
        """Return the rows of running ingestions, and if the process of each is alive."""
        query = "select run_id, done, total from runs where state_name = :state_name"
        key = {"state_name": self.state_name}
        rows = self.database.read(lambda used: [tuple(row) for row in used.rows(query, key)])
        held = self.locks.find_held([_PROGRESS + row[0] for row in rows])
        return [(row, _PROGRESS + row[0] in held) for row in rows]

    def _end_dead_announcements(self) -> None:
        dead = [row[0] for row, is_living in self._read_announcements() if not is_living]
        if dead:
            self._end_announcements(dead)

    def _end_announcements(self, run_ids: Sequence[str]) -> None:
        rows = [{"state_name": self.state_name, "run_id": run_id} for run_id in run_ids]
        self.database.write(lambda used: used.change(_END, rows), is_durable=False)


def open_book_state(
    settings: Settings, timeout_s: float = BUSY_TIMEOUT_S, *, begins_again: bool = True
) -> BookState:
    """Return the state of a book at DATABASE_URL, or in its folder below DATA_DIR.

    The database is opened by its first use.

    Args:
        settings: Settings of the book.
        timeout_s: Longest wait in seconds for another process that writes to a SQLite file.
        begins_again: Rename a damaged SQLite file and begin a new one; see `SqliteDatabase`.

    Raises:
        ConfigurationError: DATABASE_URL is not the address of a Postgres database, or STATE_NAME is
            missing.
        MissingDependencyError: A package of the extra `postgres` is not installed.
    """
    if not settings.database_url:
        locks = FileLocks(settings.state_dir / "locks")
        path = settings.state_dir / DATABASE_NAME
        file = SqliteDatabase(path, timeout_s, begins_again=begins_again)
        return BookState(file, "", locks, locks)
    if not settings.state_name:
        remedy = "Choose a name for the book's state, and set it on each machine"
        raise ConfigurationError("STATE_NAME", f"it is needed with {_SETTING}", remedy)
    require_packages("postgres", "sqlalchemy", "alembic", "psycopg")
    from rag_pipeline.adapters.database.postgres import (
        PostgresDatabase,
        PostgresLocks,
        connect_postgres,
    )

    database = PostgresDatabase(connect_postgres(_SETTING, settings.database_url), _SETTING)
    locks_of_all = PostgresLocks(database, "")
    own = PostgresLocks(database, settings.state_name)
    return BookState(database, settings.state_name, own, locks_of_all)
