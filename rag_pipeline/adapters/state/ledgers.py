"""The place of a book's ledgers and of the locks of its ingestions: files or Postgres."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from rag_pipeline.adapters.databases.postgres import connect_postgres, read_database_url
from rag_pipeline.adapters.state.book_record import (
    RecordFile,
    change_bucket_count,
    hold_and_check,
    make_record,
)
from rag_pipeline.adapters.state.files import remove_tree, require_state_name
from rag_pipeline.adapters.state.ledger import FileLedger
from rag_pipeline.adapters.state.locks import hold_buckets, hold_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from upath import UPath

    from rag_pipeline.adapters.state.book_record import BookRecord, RecordPlace
    from rag_pipeline.core.protocols.state import BucketLock, Ledger, Lock
    from rag_pipeline.core.settings import Settings

_SETTING = "LEDGER_URL"
_EXTRA = "postgres"


@dataclass(frozen=True, slots=True)
class Ledgers:
    """The ledgers of a book, one for each build of its collection, and the locks to write them.

    Attributes:
        open: Function that returns the ledger of a build. It returns one object for each build.
        drop: Function that deletes the ledger of a build.
        lock: Lock of the whole book.
        lock_buckets: Lock of some of its buckets.
        rebucket: Function that changes the number of buckets to that of the settings.
    """

    open: Callable[[str], Ledger]
    drop: Callable[[str], None]
    lock: Lock
    lock_buckets: BucketLock
    rebucket: Callable[[], None]


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
    whole, folder = settings.state_dir / "ingest.lock", settings.state_dir / "buckets"
    count = settings.bucket_count
    return _combine(
        settings.ingest_lock_timeout_s,
        wanted,
        open_ledger=lambda collection_id: FileLedger(root / "ledger" / collection_id, count),
        drop=lambda collection_id: remove_tree(root / "ledger" / collection_id),
        hold_book=lambda wait_s: hold_lock(whole, wait_s),
        hold_some=lambda numbers, wait_s: hold_buckets(whole, folder, numbers, wait_s),
        place=RecordFile(root / "state.json"),
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
    )
    from rag_pipeline.adapters.state.postgres.tables import RecordRow  # noqa: PLC0415  # the same

    count = settings.bucket_count
    return _combine(
        settings.ingest_lock_timeout_s,
        wanted,
        open_ledger=lambda collection_id: PostgresLedger(engine, name, collection_id, count),
        drop=lambda collection_id: PostgresLedger(engine, name, collection_id).drop(),
        hold_book=lambda wait_s: hold_advisory_locks(engine, name, None, wait_s),
        hold_some=lambda numbers, wait_s: hold_advisory_locks(engine, name, numbers, wait_s),
        place=RecordRow(engine, name),
    )


def _combine(
    longest_s: float,
    wanted: BookRecord,
    *,
    open_ledger: Callable[[str], Ledger],
    drop: Callable[[str], None],
    hold_book: Callable[[float], AbstractContextManager[None]],
    hold_some: Callable[[Sequence[int], float], AbstractContextManager[None]],
    place: RecordPlace,
) -> Ledgers:
    """Return the ledgers with locks that also check the record of the book."""

    def lock(timeout_s: float | None = None) -> AbstractContextManager[None]:
        held = hold_book(longest_s if timeout_s is None else timeout_s)
        return hold_and_check(held, place, wanted, may_write=True)

    def lock_buckets(buckets: Sequence[int]) -> AbstractContextManager[None]:
        return hold_and_check(hold_some(buckets, longest_s), place, wanted, may_write=False)

    return Ledgers(
        open=cache(open_ledger),
        drop=drop,
        lock=lock,
        lock_buckets=lock_buckets,
        rebucket=lambda: change_bucket_count(hold_book(longest_s), place, wanted),
    )
