"""The place of a book's ledgers and of the locks of its ingestions: files or Postgres."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from rag_pipeline.adapters.databases.postgres import connect_postgres, read_database_url
from rag_pipeline.adapters.state.book_record import (
    RecordFile,
    change_bucket_count,
    hold_and_check,
    make_record,
)
from rag_pipeline.adapters.state.files import remove_tree
from rag_pipeline.adapters.state.ledger import FileLedger
from rag_pipeline.adapters.state.locks import hold_buckets, hold_lock
from rag_pipeline.adapters.state.shared import require_state_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from upath import UPath

    from rag_pipeline.adapters.state.book_record import BookRecord, RecordPlace
    from rag_pipeline.core.protocols.state import BucketLock, Ledger, Lock, RunLocks
    from rag_pipeline.core.settings import Settings

_SETTING = "LEDGER_URL"
_EXTRA = "postgres"
_LEAST_WAIT_S: Final = 60.0  # for the lock of a collection; deleting old builds may take seconds


@dataclass(frozen=True, slots=True)
class Ledgers:
    """The ledgers of a book, one for each build of its collection, and the locks to write them.

    Attributes:
        open: Function that returns the ledger of a build. It returns one object for each build.
        drop: Function that deletes the ledger of a build.
        lock: Lock of the whole book.
        lock_buckets: Lock of some of its buckets.
        lock_collection: Function that returns a context manager that holds the lock of the
            collection with a name, while builds are created, switched or deleted.
        lock_submission: Lock with which one process at a time submits runs of the book.
        rebucket: Function that changes the number of buckets to that of the settings.
        run_locks: Locks of the runs, for other machines; None for ledgers in files.
    """

    open: Callable[[str], Ledger]
    drop: Callable[[str], None]
    lock: Lock
    lock_buckets: BucketLock
    lock_collection: Callable[[str], AbstractContextManager[None]]
    lock_submission: Lock
    rebucket: Callable[[], None]
    run_locks: RunLocks | None = None


def choose_ledgers(settings: Settings, root: Path | UPath, collection: str) -> Ledgers:
    """Return the ledgers at LEDGER_URL, or those in files if it is empty.

    Args:
        settings: Settings of the book.
        root: Folder of the book's state, for ledgers in files.
        collection: Name of the book's own collection, to which the state belongs.

    Raises:
        ConfigurationError: LEDGER_URL is not the address of a Postgres database, or STATE_NAME is
            missing.
        MissingDependencyError: A package of the extra `postgres` is not installed.
    """
    wanted = make_record(settings, collection)
    if settings.ledger_url:
        return _use_postgres(settings, wanted)
    return _use_files(settings, root, wanted)


def _use_files(settings: Settings, root: Path | UPath, wanted: BookRecord) -> Ledgers:
    folder, count = settings.state_dir, settings.bucket_count
    whole = folder / "ingest.lock"
    locks = _BookLocks(
        hold_book=lambda wait_s: hold_lock(whole, wait_s),
        hold_some=lambda numbers, wait_s: hold_buckets(whole, folder / "buckets", numbers, wait_s),
        place=RecordFile(root / "state.json"),
        wanted=wanted,
        longest_s=settings.ingest_lock_timeout_s,
    )
    longest_s = max(_LEAST_WAIT_S, locks.longest_s)
    return Ledgers(
        open=cache(lambda collection_id: FileLedger(root / "ledger" / collection_id, count)),
        drop=lambda collection_id: remove_tree(root / "ledger" / collection_id),
        lock=locks.lock,
        lock_buckets=locks.lock_buckets,
        lock_collection=lambda name: hold_lock(folder / "collections" / f"{name}.lock", longest_s),
        lock_submission=lambda timeout_s=None: hold_lock(
            folder / "submission.lock", longest_s if timeout_s is None else timeout_s
        ),
        rebucket=locks.rebucket,
    )


def _use_postgres(settings: Settings, wanted: BookRecord) -> Ledgers:
    name = require_state_name(settings, _SETTING)
    url = read_database_url(_SETTING, settings.ledger_url, _EXTRA)
    engine = connect_postgres(_SETTING, url, _EXTRA)
    from rag_pipeline.adapters.state.postgres.ledger import (  # noqa: PLC0415  # needs an extra
        PostgresLedger,
    )
    from rag_pipeline.adapters.state.postgres.locks import (  # noqa: PLC0415  # needs an extra
        hold_advisory_locks,
        hold_collection_lock,
        hold_submission_lock,
    )
    from rag_pipeline.adapters.state.postgres.run_locks import (  # noqa: PLC0415  # needs an extra
        PostgresRunLocks,
    )
    from rag_pipeline.adapters.state.postgres.tables import RecordRow  # noqa: PLC0415  # the same

    count = settings.bucket_count
    locks = _BookLocks(
        hold_book=lambda wait_s: hold_advisory_locks(engine, name, None, wait_s),
        hold_some=lambda numbers, wait_s: hold_advisory_locks(engine, name, numbers, wait_s),
        place=RecordRow(engine, name),
        wanted=wanted,
        longest_s=settings.ingest_lock_timeout_s,
    )
    longest_s = max(_LEAST_WAIT_S, locks.longest_s)
    return Ledgers(
        open=cache(lambda collection_id: PostgresLedger(engine, name, collection_id, count)),
        drop=lambda collection_id: PostgresLedger(engine, name, collection_id).drop(),
        lock=locks.lock,
        lock_buckets=locks.lock_buckets,
        lock_collection=lambda collection: hold_collection_lock(engine, collection, longest_s),
        lock_submission=lambda timeout_s=None: hold_submission_lock(
            engine, name, longest_s if timeout_s is None else timeout_s
        ),
        rebucket=locks.rebucket,
        run_locks=PostgresRunLocks(engine, name),
    )


@dataclass(frozen=True, slots=True)
class _BookLocks:
    """The locks of a book, each of which also checks the record of the book."""

    hold_book: Callable[[float], AbstractContextManager[None]]
    hold_some: Callable[[Sequence[int], float], AbstractContextManager[None]]
    place: RecordPlace
    wanted: BookRecord
    longest_s: float

    def lock(self, timeout_s: float | None = None) -> AbstractContextManager[None]:
        held = self.hold_book(self.longest_s if timeout_s is None else timeout_s)
        return hold_and_check(held, self.place, self.wanted, may_write=True)

    def lock_buckets(self, buckets: Sequence[int]) -> AbstractContextManager[None]:
        held = self.hold_some(buckets, self.longest_s)
        return hold_and_check(held, self.place, self.wanted, may_write=False)

    def rebucket(self) -> None:
        change_bucket_count(self.hold_book(self.longest_s), self.place, self.wanted)
