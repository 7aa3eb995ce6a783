"""The tables of a book: which documents are indexed, which failed, and the state of the book."""

from __future__ import annotations

import dataclasses
import json
import sys
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import uuid4

from rag_pipeline.adapters.database import Connection, Database, clean_text
from rag_pipeline.adapters.database.sqlite import BUSY_TIMEOUT_S, FileLocks, SqliteDatabase
from rag_pipeline.core.errors import (
    ConfigurationError,
    LedgerConflictError,
    StoreError,
    require_packages,
)
from rag_pipeline.core.models import MarkdownFormat, SiteSettings
from rag_pipeline.core.protocols import IngestionProgress, LedgerEntry, LedgerFailure
from rag_pipeline.core.site.addresses import RecordedSite, describe_source, read_sources
from rag_pipeline.core.state_dirs import DATABASE_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.protocols import Announce, RunLock
    from rag_pipeline.core.settings import Settings


_KEY: Final = "state_name = :state_name and collection_id = :collection_id"
_PLACE: Final = f"{_KEY} and doc_id = :doc_id"
_CONFLICT: Final = "on conflict (state_name, collection_id, doc_id) do update set"
_FIELDS: Final = tuple(field.name for field in dataclasses.fields(LedgerEntry))
_COLUMNS: Final = ", ".join(_FIELDS)
_VALUES: Final = ", ".join(f":{name}" for name in _FIELDS)
_CHANGED: Final = ", ".join(
    f"{name} = :{name}" for name in _FIELDS if name not in {"doc_id", "collection_id"}
)
_REPEATED: Final = tuple(
    _FIELDS.index(name) for name in ("pipeline_fingerprint", "collection_id", "run_id")
)

_INSERT: Final = f"""
insert into documents (state_name, {_COLUMNS}) values (:state_name, {_VALUES})
on conflict do nothing
"""
_UPDATE: Final = f"update documents set {_CHANGED} where {_PLACE} and version = :old_version"
_FAILED: Final = tuple(field.name for field in dataclasses.fields(LedgerFailure))
_FAIL: Final = f"""
insert into failures (state_name, collection_id, {", ".join(_FAILED)})
values (:state_name, :collection_id, {", ".join(f":{name}" for name in _FAILED)})
{_CONFLICT} {", ".join(f"{name} = excluded.{name}" for name in _FAILED[1:])}
"""
_CLAIM: Final = f"""
insert into claims (state_name, collection_id, doc_id, run_id)
values (:state_name, :collection_id, :doc_id, :run_id)
{_CONFLICT} run_id = excluded.run_id where claims.run_id = :owner
"""
_SITE: Final = """
insert into sites (state_name, collection_id, site) values (:state_name, :collection_id, :site)
on conflict (state_name, collection_id) do update set site = excluded.site
"""


class SqlLedger:
    """A `Ledger` in a database, which several processes and machines can share.

    Each build (version) of a collection has its own ledger, so that a rollback to the previous
    build also brings back that build's ledger.

    Args:
        database: The database.
        state_name: Name of the book's state in the database.
        collection_id: Id of the build whose documents are recorded.
        find_living: Function that returns those of the given runs that have a living process.
    """

    def __init__(
        self,
        database: Database,
        state_name: str,
        collection_id: str,
        find_living: Callable[[Collection[str]], set[str]],
    ) -> None:
        self._database = database
        self._key = {"state_name": state_name, "collection_id": collection_id}
        self._find_living = find_living

    def entries(self) -> dict[DocId, LedgerEntry]:
        """Return the ledger entries of the indexed documents, by document id."""
        query = f"select {_COLUMNS} from documents where {_KEY}"

        def load(connection: Connection) -> dict[DocId, LedgerEntry]:
            entries = map(_make_entry, connection.rows(query, self._key))
            return {entry.doc_id: entry for entry in entries}

        return self._database.read(load)

    def failures(self) -> dict[DocId, LedgerFailure]:
        """Return the failure records of the documents, by document id."""
        query = f"select {', '.join(_FAILED)} from failures where {_KEY}"

        def load(connection: Connection) -> dict[DocId, LedgerFailure]:
            return {row[0]: LedgerFailure(*row) for row in connection.rows(query, self._key)}

        return self._database.read(load)

    def record(self, entry: LedgerEntry) -> LedgerEntry:
        """Write the ledger entry of an indexed document, and delete its failure record.

        Returns:
            The entry with its new version.

        Raises:
            LedgerConflictError: The ledger has another version than `entry`. Nothing was written.
        """

        def write(connection: Connection) -> LedgerEntry:
            written = self._swap(connection, entry)
            self._clear_failure(connection, entry.doc_id)
            return written

        return self._database.write(write)

    def record_begun(self, entry: LedgerEntry) -> LedgerEntry:
        """Write a provisional ledger entry for a document, before its points are changed.

        The entry must have an empty `sha256`, so that the document does not count as indexed until
        `record` is called. A failure record of the document stays. The result and the errors are
        those of `record`.
        """
        return self._database.write(lambda used: self._swap(used, entry))

    def record_failure(self, failure: LedgerFailure) -> None:
        """Write the failure record of a document; its ledger entry stays unchanged."""
        values = dataclasses.asdict(failure) | {"message": clean_text(failure.message)}
        self._database.write(lambda used: used.change(_FAIL, self._key | values))

    def forget(self, doc_id: DocId, version: int) -> None:
        """Delete the document's ledger entry and its failure record, if they exist.

        Raises:
            LedgerConflictError: The ledger has another version of the entry. Nothing was deleted.
        """
        place = self._place(doc_id)

        def delete(connection: Connection) -> None:
            gone = f"delete from documents where {_PLACE} and version = :version"
            found = f"select 1 from documents where {_PLACE}"
            is_gone = connection.change(gone, place | {"version": version})
            if not is_gone and (version or list(connection.rows(found, place))):
                raise LedgerConflictError(doc_id)
            self._clear_failure(connection, doc_id)

        self._database.write(delete)

    def claim(self, doc_ids: Collection[DocId], run_id: str) -> set[DocId]:
        """Claim documents for a run, and return those that the run has now."""
        wanted = set(doc_ids)
        owners = self._database.read(self._read_owners)
        living = self._find_living({*owners.values()} - {run_id})
        free = [doc_id for doc_id in sorted(wanted) if owners.get(doc_id) not in living]
        rows = [
            self._place(doc_id) | {"run_id": run_id, "owner": owners.get(doc_id, "")}
            for doc_id in free
        ]

        def write(connection: Connection) -> dict[DocId, str]:
            connection.change(_CLAIM, rows)
            return self._read_owners(connection)

        now = self._database.write(write, is_durable=False)
        return {doc_id for doc_id in wanted if now.get(doc_id) == run_id}

    def release(self, run_id: str) -> None:
        """Give back all claims of a run."""
        claims = f"delete from claims where {_KEY} and run_id = :run_id"
        values = self._key | {"run_id": run_id}
        self._database.write(lambda used: used.change(claims, values), is_durable=False)

    def record_site(self, site: RecordedSite) -> None:
        """Write the site for which the links of all indexed documents were built."""
        sources = [describe_source(one, ".") for one in site.sources]
        stored = dataclasses.asdict(site.site) | {"sources": sources}
        row = self._key | {"site": json.dumps(stored)}
        self._database.write(lambda used: used.change(_SITE, row))

    def read_site(self) -> RecordedSite | None:
        """Return the recorded site; None if it is missing or cannot be read."""
        query = f"select site from sites where {_KEY}"
        rows = self._database.read(lambda used: list(used.rows(query, self._key)))
        if not rows:
            return None
        try:
            values = dict(json.loads(rows[0][0]))
            values["markdown_format"] = MarkdownFormat(values["markdown_format"])
            sources = read_sources(values.pop("sources")) or ()
            return RecordedSite(SiteSettings(**values), sources)
        except (ValueError, TypeError, KeyError):
            return None  # another release has written it

    def drop(self) -> None:
        """Delete the ledger of this build."""

        def delete(connection: Connection) -> None:
            for table in ("documents", "failures", "claims", "sites"):
                connection.change(f"delete from {table} where {_KEY}", self._key)

        self._database.write(delete)

    def _place(self, doc_id: DocId) -> dict[str, Any]:
        return self._key | {"doc_id": doc_id}

    def _swap(self, connection: Connection, entry: LedgerEntry) -> LedgerEntry:
        written = dataclasses.replace(entry, version=entry.version + 1)
        values = dataclasses.asdict(written) | self._key | {"old_version": entry.version}
        if not connection.change(_UPDATE if entry.version else _INSERT, values):
            raise LedgerConflictError(entry.doc_id)
        return written

    def _read_owners(self, connection: Connection) -> dict[DocId, str]:
        return dict(connection.rows(f"select doc_id, run_id from claims where {_KEY}", self._key))

    def _clear_failure(self, connection: Connection, doc_id: DocId) -> None:
        connection.change(f"delete from failures where {_PLACE}", self._place(doc_id))


def _make_entry(row: Any) -> LedgerEntry:  # noqa: ANN401  # a row of either database
    """Return the entry of a row.

    A text that most entries of a book have is one object for all of them, which saves 30 MB for
    100,000 documents.
    """
    values = list(row)
    for place in _REPEATED:
        values[place] = sys.intern(values[place])
    return LedgerEntry(*values)


# ruff: noqa: PLC0415  # Postgres needs SQLAlchemy, whose import takes long


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

    def hold(self, name: str, timeout_s: float) -> AbstractContextManager[None]:
        """Return a context manager that holds a lock.

        Args:
            name: Name of the lock.
            timeout_s: Longest time in seconds to wait for the lock.

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
        """Take the lock of a run, and return it; see `core.protocols.RunLocks`."""
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

    @contextmanager
    def announce(self) -> Iterator[Announce]:
        """Yield a function that tells other processes how many documents are indexed."""
        run_id = uuid4().hex

        def announce(done: int, total: int) -> None:
            row = {"state_name": self.state_name, "run_id": run_id, "done": done, "total": total}
            self.database.write(lambda used: used.change(_ANNOUNCE, row), is_durable=False)

        lock = self.locks.watch(_PROGRESS + run_id)
        try:
            self._end_announcements()
            announce(0, 0)
            yield announce
        finally:
            lock.release()
            # A server may see the lock as held for a moment after it was released.
            with suppress(StoreError):  # the next ingestion deletes the row too
                self._end_announcements(run_id)

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
        row = {"state_name": self.state_name, "collection": collection}
        row["docs_dir"], row["data_dir"] = places
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

    def _end_announcements(self, *run_ids: str) -> None:
        """Delete the rows of these runs, and those of processes that are dead."""
        dead = [row[0] for row, is_living in self._read_announcements() if not is_living]
        rows = [{"state_name": self.state_name, "run_id": one} for one in {*run_ids, *dead}]
        if rows:
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
