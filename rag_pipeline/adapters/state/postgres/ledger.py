"""The ledger, a record of which documents are indexed, as rows in Postgres."""

from __future__ import annotations

import dataclasses
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import SQLAlchemyError

from rag_pipeline.adapters.databases.migrating import Migrations, migrate
from rag_pipeline.core.errors import LedgerConflictError, LedgerUnavailableError
from rag_pipeline.core.models import MarkdownFormat, SiteSettings
from rag_pipeline.core.protocols.state import LedgerEntry, LedgerFailure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Engine, Table

    from rag_pipeline.core.ids import DocId

_MIGRATIONS: Final = Migrations(
    folder=Path(__file__).with_name("migrations"),
    version_table="ledger_version",
    lock=7_206_511_019,  # any number that other programs do not use
    newer=LedgerUnavailableError(
        "the ledger was written by a newer version of rag-pipeline. Update this installation, or "
        "choose another database with LEDGER_URL"
    ),
)

_METADATA: Final = sa.MetaData()
_KEY: Final = ("state_name", "collection_id", "doc_id")


def _declare(name: str) -> Table:
    return sa.Table(
        name,
        _METADATA,
        *(sa.Column(column, sa.Text, primary_key=True) for column in _KEY),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("record", sa.JSON, nullable=False),
    )


_DOCUMENTS: Final = _declare("ledger_documents")
_FAILURES: Final = _declare("ledger_failures")
_SITES: Final = sa.Table(
    "ledger_sites",
    _METADATA,
    *(sa.Column(column, sa.Text, primary_key=True) for column in _KEY[:2]),
    sa.Column("site", sa.JSON, nullable=False),
)

_Record = TypeVar("_Record", LedgerEntry, LedgerFailure)


class PostgresLedger:
    """A ledger (the record of which documents are indexed) that processes on several hosts share.

    Each entry has a version, which every write raises by one. This instance remembers the version
    of each entry that it read or wrote, and replaces only an entry that still has this version. A
    process that was stopped for an hour therefore cannot undo what another one did meanwhile.

    The first use creates the tables.

    Args:
        engine: The Postgres database.
        state_name: Name of the book's state, equal on all hosts.
        collection_id: Build (version) of the collection whose documents are recorded.
    """

    def __init__(self, engine: Engine, state_name: str, collection_id: str) -> None:
        self._engine = engine
        self._book = {"state_name": state_name, "collection_id": collection_id}
        self._versions: dict[DocId, int] = {}
        self._has_read = False
        self._is_open = False
        self._opening = Lock()

    def entries(self) -> dict[DocId, LedgerEntry]:
        """Return the ledger entries of all indexed documents, by document id.

        An entry of another format counts as missing, so its document is indexed again.

        Raises:
            LedgerUnavailableError: The database cannot be read.
        """
        columns = (_DOCUMENTS.c.doc_id, _DOCUMENTS.c.version, _DOCUMENTS.c.record)
        with self._connect("read") as connection:
            rows = connection.execute(self._choose(*columns)).all()
        self._versions = {doc_id: version for doc_id, version, _ in rows}
        self._has_read = True
        return _load_all(LedgerEntry, [(doc_id, record) for doc_id, _, record in rows])

    def failures(self) -> dict[DocId, LedgerFailure]:
        """Return the failure records of all documents whose last attempt failed, by document id.

        Raises:
            LedgerUnavailableError: The database cannot be read.
        """
        with self._connect("read") as connection:
            chosen = self._choose(_FAILURES.c.doc_id, _FAILURES.c.record)
            rows = [(doc_id, record) for doc_id, record in connection.execute(chosen)]
        return _load_all(LedgerFailure, rows)

    def record(self, entry: LedgerEntry) -> None:
        """Write the ledger entry of an indexed document, and delete its failure record.

        Raises:
            LedgerConflictError: Another process has written or deleted the entry meanwhile.
            LedgerUnavailableError: The database cannot be written.
        """
        with self._connect("written") as connection:
            version = self._swap(connection, entry)
            connection.execute(self._delete(_FAILURES, entry.doc_id))
        self._versions[entry.doc_id] = version

    def record_begun(self, entry: LedgerEntry) -> None:
        """Write a provisional ledger entry for a document, before its points are changed.

        The entry must have an empty `sha256`, so that the document does not count as indexed until
        `record` is called. A failure record of the document stays.

        Raises:
            LedgerConflictError: Another process has written or deleted the entry meanwhile.
            LedgerUnavailableError: The database cannot be written.
        """
        with self._connect("written") as connection:
            version = self._swap(connection, entry)
        self._versions[entry.doc_id] = version

    def record_failure(self, failure: LedgerFailure) -> None:
        """Write the failure record of a document; its ledger entry stays unchanged.

        Raises:
            LedgerUnavailableError: The database cannot be written.
        """
        row = {**self._book, "doc_id": failure.doc_id, "version": 1}
        record = dataclasses.asdict(failure)
        written = insert(_FAILURES).values(row | {"record": record})
        written = written.on_conflict_do_update(index_elements=_KEY, set_={"record": record})
        with self._connect("written") as connection:
            connection.execute(written)

    def forget(self, doc_id: DocId) -> None:
        """Delete the document's ledger entry and its failure record, if they exist.

        Raises:
            LedgerConflictError: Another process has written the entry meanwhile.
            LedgerUnavailableError: The database cannot be written.
        """
        with self._connect("written") as connection:
            gone = self._delete(_DOCUMENTS, doc_id)
            if self._has_read:
                gone = gone.where(_DOCUMENTS.c.version == self._versions.get(doc_id))
            if not connection.execute(gone).rowcount:
                found = self._choose(_DOCUMENTS.c.doc_id)
                if connection.execute(found.where(_DOCUMENTS.c.doc_id == doc_id)).first():
                    raise LedgerConflictError(doc_id)
            connection.execute(self._delete(_FAILURES, doc_id))
        self._versions.pop(doc_id, None)

    def discard_damaged(self) -> None:
        """Delete the rows that cannot be read as an entry or a failure record."""
        kinds: tuple[tuple[Table, type], ...] = (
            (_DOCUMENTS, LedgerEntry),
            (_FAILURES, LedgerFailure),
        )
        with self._connect("written") as connection:
            for table, record_class in kinds:
                chosen = self._choose(table.c.doc_id, table.c.record)
                for doc_id, record in connection.execute(chosen).all():
                    if _load(record_class, doc_id, record) is None:
                        connection.execute(self._delete(table, doc_id))

    def record_site(self, site: SiteSettings) -> None:
        """Write the site settings that the links of all indexed documents were built with."""
        values = {"site": dataclasses.asdict(site)}
        written = insert(_SITES).values(self._book | values)
        with self._connect("written") as connection:
            connection.execute(written.on_conflict_do_update(index_elements=_KEY[:2], set_=values))

    def read_site(self) -> SiteSettings | None:
        """Return the recorded site settings; None if they are missing or cannot be read."""
        with self._connect("read") as connection:
            stored: Any = connection.execute(self._choose(_SITES.c.site)).scalar()
        try:
            stored["markdown_format"] = MarkdownFormat(stored["markdown_format"])
            return SiteSettings(**stored)
        except (ValueError, TypeError, KeyError):
            return None

    def drop(self) -> None:
        """Delete all rows of the collection.

        Raises:
            LedgerUnavailableError: The database cannot be written.
        """
        with self._connect("written") as connection:
            for table in (_DOCUMENTS, _FAILURES, _SITES):
                connection.execute(sa.delete(table).filter_by(**self._book))

    def _swap(self, connection: Connection, entry: LedgerEntry) -> int:
        """Write an entry if nobody changed it since it was read, and return its new version."""
        record = dataclasses.asdict(entry)
        known = self._versions.get(entry.doc_id)
        written: sa.Insert | sa.Update
        if known is None:
            row = {**self._book, "doc_id": entry.doc_id, "version": 1, "record": record}
            added = insert(_DOCUMENTS).values(row)
            if self._has_read:
                written = added.on_conflict_do_nothing()
            else:
                raised = {"record": record, "version": _DOCUMENTS.c.version + 1}
                written = added.on_conflict_do_update(index_elements=_KEY, set_=raised)
        else:
            written = (
                sa.update(_DOCUMENTS)
                .filter_by(**self._book, doc_id=entry.doc_id, version=known)
                .values(record=record, version=known + 1)
            )
        version = connection.execute(written.returning(_DOCUMENTS.c.version)).scalar()
        if version is None:
            raise LedgerConflictError(entry.doc_id)
        return int(version)

    def _choose(self, *columns: sa.Column[Any]) -> sa.Select[Any]:
        return sa.select(*columns).filter_by(**self._book)

    def _delete(self, table: Table, doc_id: DocId) -> sa.Delete:
        return sa.delete(table).filter_by(**self._book, doc_id=doc_id)

    @contextmanager
    def _connect(self, action: str) -> Iterator[Connection]:
        with describe_failures(f"the ledger at LEDGER_URL cannot be {action}"):
            with self._opening:
                if not self._is_open:
                    migrate(self._engine, _MIGRATIONS)
                    self._is_open = True
            with self._engine.begin() as connection:
                yield connection


@contextmanager
def describe_failures(problem: str) -> Iterator[None]:
    """Raise a LedgerUnavailableError in place of an error of the database in the block."""
    try:
        yield
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        first = (str(cause).splitlines() or [""])[0][:200]
        advice = "Check LEDGER_URL and that the server is running; the next ingest goes on"
        raise LedgerUnavailableError(f"{problem}: {first}. {advice}") from error


def _load_all(record_class: type[_Record], rows: list[tuple[DocId, Any]]) -> dict[DocId, _Record]:
    loaded = ((doc_id, _load(record_class, doc_id, record)) for doc_id, record in rows)
    return {doc_id: record for doc_id, record in loaded if record is not None}


def _load(record_class: type[_Record], doc_id: DocId, record: Any) -> _Record | None:  # noqa: ANN401  # JSON
    try:
        loaded = record_class(**record)
    except TypeError:
        return None
    return loaded if loaded.doc_id == doc_id else None
