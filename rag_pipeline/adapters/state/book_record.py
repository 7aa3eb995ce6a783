"""The record of what the workers of a book must have in common: its collection and buckets."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Protocol

from rag_pipeline.adapters.state.files import read_file, write_text_atomically
from rag_pipeline.core.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from upath import UPath

    from rag_pipeline.core.settings import Settings


@dataclass(frozen=True, slots=True)
class BookRecord:
    """What all workers of a book must have in common.

    Attributes:
        bucket_count: Number of buckets. With another number, the locks of two workers would not
            exclude each other.
        collection: Name of the book's collection; empty if no other book can have the same state.
    """

    bucket_count: int
    collection: str


class RecordPlace(Protocol):
    """The place where the record of one book is stored."""

    def read(self) -> BookRecord | None:
        """Return the record; None if it is missing or damaged."""

    def write(self, record: BookRecord) -> None:
        """Write the record, replacing the old one."""


class RecordFile:
    """The record of a book as a JSON file in its state folder.

    Args:
        path: Path of the file, on a disk or an object store.
    """

    def __init__(self, path: Path | UPath) -> None:
        self._path = path

    def read(self) -> BookRecord | None:
        """Return the record; None if it is missing or damaged."""
        try:
            stored = json.loads(read_file(self._path))
            return BookRecord(int(stored["bucket_count"]), str(stored["collection"]))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def write(self, record: BookRecord) -> None:
        """Write the record, replacing the old one."""
        write_text_atomically(self._path, json.dumps(asdict(record)) + "\n")


def make_record(settings: Settings, collection: str) -> BookRecord:
    """Return the record of a book with these settings and this collection."""
    is_named = bool(settings.state_url or settings.ledger_url)
    return BookRecord(settings.bucket_count, collection if is_named else "")


@contextmanager
def hold_and_check(
    lock: AbstractContextManager[None],
    place: RecordPlace,
    wanted: BookRecord,
    *,
    may_write: bool,
) -> Iterator[None]:
    """Hold a lock during a `with` block, after a check that the book has the wanted record.

    Args:
        lock: The lock of the book or of some of its buckets.
        place: The place of the record.
        wanted: The record that the settings ask for.
        may_write: Write the record if there is none. Only the lock of the whole book allows it.

    Raises:
        ConfigurationError: The book has another record. Nothing was changed.
        StoreLockedError: Another process holds the lock.
    """
    with lock:
        stored = place.read()
        if stored is not None:
            _refuse_other_collection(stored, wanted)
            _refuse_other_buckets(stored, wanted)
        elif may_write:
            place.write(wanted)
        yield


def change_bucket_count(
    lock: AbstractContextManager[None], place: RecordPlace, wanted: BookRecord
) -> None:
    """Record the wanted number of buckets while the lock of the whole book is held.

    Documents need no change, because the bucket of a document follows from its id.

    Raises:
        ConfigurationError: The state belongs to another collection. Nothing was changed.
        StoreLockedError: A worker still holds a lock of the book.
    """
    with lock:
        stored = place.read()
        if stored is not None:
            _refuse_other_collection(stored, wanted)
        place.write(wanted)


def _refuse_other_buckets(stored: BookRecord, wanted: BookRecord) -> None:
    if stored.bucket_count != wanted.bucket_count:
        raise ConfigurationError(
            "BUCKET_COUNT",
            f"it is {wanted.bucket_count} here, but the book is indexed in {stored.bucket_count} "
            "buckets",
            f"Set it to {stored.bucket_count}, or set {wanted.bucket_count} on all machines and "
            "run `rag-pipeline ingest --rebucket` once",
        )


def _refuse_other_collection(stored: BookRecord, wanted: BookRecord) -> None:
    if stored.collection and wanted.collection and stored.collection != wanted.collection:
        raise ConfigurationError(
            "STATE_NAME",
            f"the state with this name belongs to the collection {stored.collection}, but "
            f"QDRANT_COLLECTION is {wanted.collection}",
            "Give each book, and each new collection of a book, a STATE_NAME of its own",
        )
