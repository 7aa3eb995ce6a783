"""The ledger, a record of which documents are indexed, as rows in Postgres."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from rag_pipeline.adapters.state.ledger_records import dump_site, load_site, make_record
from rag_pipeline.adapters.state.postgres.tables import (
    DOCUMENTS,
    FAILURES,
    KEY,
    SITES,
    LedgerTables,
)
from rag_pipeline.core.buckets import BUCKET_COUNT, bucket_of, is_in
from rag_pipeline.core.errors import LedgerConflictError
from rag_pipeline.core.protocols.state import LedgerEntry, LedgerFailure

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import Connection, Engine, Table

    from rag_pipeline.adapters.state.ledger_records import Record
    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.site.source_entries import RecordedSite

_PAGE_ROWS: Final = 1_000


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
        bucket_count: Number of buckets (groups of documents) of the book.
    """

    def __init__(
        self,
        engine: Engine,
        state_name: str,
        collection_id: str,
        bucket_count: int = BUCKET_COUNT,
    ) -> None:
        self._tables = LedgerTables(engine)
        self._book = {"state_name": state_name, "collection_id": collection_id}
        self._bucket_count = bucket_count

    def entries(self, buckets: Collection[int] | None = None) -> dict[DocId, LedgerEntry]:
        """Return the ledger entries of the indexed documents in the buckets, by document id.

        An entry of another format counts as missing, so its document is indexed again.

        Raises:
            LedgerUnavailableError: The database cannot be read.
        """
        columns = (DOCUMENTS.c.doc_id, DOCUMENTS.c.record, DOCUMENTS.c.version)
        return self._load_all(LedgerEntry, buckets, *columns)

    def failures(self, buckets: Collection[int] | None = None) -> dict[DocId, LedgerFailure]:
        """Return the failure records of the documents in the buckets, by document id.

        Raises:
            LedgerUnavailableError: The database cannot be read.
        """
        return self._load_all(LedgerFailure, buckets, FAILURES.c.doc_id, FAILURES.c.record)

    def record(self, entry: LedgerEntry) -> LedgerEntry:
        """Write the ledger entry of an indexed document, and delete its failure record.

        Returns:
            The entry with its new version.

        Raises:
            LedgerConflictError: The ledger has another version than `entry`. Nothing was written.
            LedgerUnavailableError: The database cannot be written.
        """
        with self._tables.connect("written") as connection:
            written = self._swap(connection, entry)
            connection.execute(self._delete(FAILURES, entry.doc_id))
        return written

    def record_begun(self, entry: LedgerEntry) -> LedgerEntry:
        """Write a provisional ledger entry for a document, before its points are changed.

        The entry must have an empty `sha256`, so that the document does not count as indexed until
        `record` is called. A failure record of the document stays. The result and the errors are
        those of `record`.
        """
        with self._tables.connect("written") as connection:
            return self._swap(connection, entry)

    def record_failure(self, failure: LedgerFailure) -> None:
        """Write the failure record of a document; its ledger entry stays unchanged.

        Raises:
            LedgerUnavailableError: The database cannot be written.
        """
        row = self._locate(failure.doc_id)
        record = dataclasses.asdict(failure)
        written = insert(FAILURES).values(row | {"record": record})
        written = written.on_conflict_do_update(index_elements=KEY, set_={"record": record})
        with self._tables.connect("written") as connection:
            connection.execute(written)

    def forget(self, doc_id: DocId, version: int) -> None:
        """Delete the document's ledger entry and its failure record, if they exist.

        Raises:
            LedgerConflictError: The ledger has another version of the entry. Nothing was deleted.
            LedgerUnavailableError: The database cannot be written.
        """
        with self._tables.connect("written") as connection:
            gone = self._delete(DOCUMENTS, doc_id).where(DOCUMENTS.c.version == version)
            is_gone = bool(connection.execute(gone).rowcount)
            found = self._choose(DOCUMENTS.c.doc_id).where(DOCUMENTS.c.doc_id == doc_id)
            if not is_gone and (version or connection.execute(found).first()):
                raise LedgerConflictError(doc_id)
            connection.execute(self._delete(FAILURES, doc_id))

    def discard_damaged(self) -> None:
        """Delete the rows that cannot be read as an entry or a failure record."""
        kinds: tuple[tuple[Table, type], ...] = (
            (DOCUMENTS, LedgerEntry),
            (FAILURES, LedgerFailure),
        )
        with self._tables.connect("written") as connection:
            for table, record_class in kinds:
                chosen = self._choose(table.c.doc_id, table.c.record)
                for doc_id, record in connection.execute(chosen).all():
                    if _load(record_class, doc_id, record) is None:
                        connection.execute(self._delete(table, doc_id))

    def record_site(self, site: RecordedSite) -> None:
        """Write the site for which the links of all indexed documents were built."""
        values = {"site": dump_site(site)}
        written = insert(SITES).values(self._book | values)
        with self._tables.connect("written") as connection:
            connection.execute(written.on_conflict_do_update(index_elements=KEY[:2], set_=values))

    def read_site(self) -> RecordedSite | None:
        """Return the recorded site; None if it is missing or cannot be read."""
        with self._tables.connect("read") as connection:
            return load_site(connection.execute(self._choose(SITES.c.site)).scalar())

    def drop(self) -> None:
        """Delete all rows of the collection.

        Raises:
            LedgerUnavailableError: The database cannot be written.
        """
        with self._tables.connect("written") as connection:
            for table in (DOCUMENTS, FAILURES, SITES):
                connection.execute(sa.delete(table).filter_by(**self._book))

    def _swap(self, connection: Connection, entry: LedgerEntry) -> LedgerEntry:
        new = dataclasses.replace(entry, version=entry.version + 1)
        values = {"record": dataclasses.asdict(new), "version": new.version}
        written: sa.Insert | sa.Update
        if entry.version == 0:
            row = {**self._locate(entry.doc_id), **values}
            written = insert(DOCUMENTS).values(row).on_conflict_do_nothing()
        else:
            place = {**self._book, "doc_id": entry.doc_id, "version": entry.version}
            written = sa.update(DOCUMENTS).filter_by(**place).values(values)
        if connection.execute(written.returning(DOCUMENTS.c.version)).scalar() is None:
            raise LedgerConflictError(entry.doc_id)
        return new

    def _locate(self, doc_id: DocId) -> dict[str, Any]:
        return {**self._book, "doc_id": doc_id, "bucket": bucket_of(doc_id)}

    def _choose_buckets(
        self, buckets: Collection[int] | None, *columns: sa.Column[Any]
    ) -> sa.Select[Any]:
        """Return the query for the rows of some buckets; it may find rows of others too.

        The tables have the bucket out of 256. The bucket out of another number follows from it only
        if that number divides 256.
        """
        chosen = self._choose(*columns)
        if buckets is None or BUCKET_COUNT % self._bucket_count:
            return chosen
        place = columns[0].table.c.bucket % self._bucket_count
        return chosen.where(place.in_(sorted(buckets)))

    def _load_all(
        self,
        record_class: type[Record],
        buckets: Collection[int] | None,
        *columns: sa.Column[Any],
    ) -> dict[DocId, Record]:
        """Return the records of some buckets; the server sends the rows page by page."""
        loaded: dict[DocId, Record] = {}
        with self._tables.connect("read") as connection:
            chosen = self._choose_buckets(buckets, *columns)
            rows = connection.execution_options(yield_per=_PAGE_ROWS).execute(chosen)
            for doc_id, stored, *version in rows:
                record = _load(record_class, doc_id, stored, *version)
                if record is not None and is_in(doc_id, buckets, self._bucket_count):
                    loaded[doc_id] = record
        return loaded

    def _choose(self, *columns: sa.Column[Any]) -> sa.Select[Any]:
        return sa.select(*columns).filter_by(**self._book)

    def _delete(self, table: Table, doc_id: DocId) -> sa.Delete:
        return sa.delete(table).filter_by(**self._book, doc_id=doc_id)


def _load(
    record_class: type[Record],
    doc_id: DocId,
    stored: Any,  # noqa: ANN401  # JSON
    version: int | None = None,
) -> Record | None:
    try:
        loaded = make_record(
            record_class, stored if version is None else stored | {"version": version}
        )
    except (TypeError, AttributeError):
        return None
    return loaded if loaded.doc_id == doc_id else None
