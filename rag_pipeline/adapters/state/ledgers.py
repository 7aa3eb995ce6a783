"""The place of a book's ledgers and of the locks of its ingestions: files or Postgres."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from rag_pipeline.adapters.databases.postgres import connect_postgres, read_database_url
from rag_pipeline.adapters.state.files import remove_tree, require_state_name
from rag_pipeline.adapters.state.ledger import FileLedger
from rag_pipeline.adapters.state.locks import hold_buckets, hold_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from upath import UPath

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
    """

    open: Callable[[str], Ledger]
    drop: Callable[[str], None]
    lock: Lock
    lock_buckets: BucketLock


def choose_ledgers(settings: Settings, root: Path | UPath) -> Ledgers:
    """Return the ledgers at LEDGER_URL, or those in files if it is empty.

    Args:
        settings: Settings of the book.
        root: Folder of the book's state, for ledgers in files.

    Raises:
        ConfigurationError: LEDGER_URL is not the address of a Postgres database, or STATE_NAME is
            missing.
        MissingDependencyError: A package of the extra `postgres` is not installed.
    """
    return _use_postgres(settings) if settings.ledger_url else _use_files(settings, root)


def _use_files(settings: Settings, root: Path | UPath) -> Ledgers:
    whole, buckets = settings.state_dir / "ingest.lock", settings.state_dir / "buckets"
    longest_s, count = settings.ingest_lock_timeout_s, settings.bucket_count

    def lock(timeout_s: float | None = None) -> AbstractContextManager[None]:
        return hold_lock(whole, longest_s if timeout_s is None else timeout_s)

    return Ledgers(
        open=cache(lambda collection_id: FileLedger(root / "ledger" / collection_id, count)),
        drop=lambda collection_id: remove_tree(root / "ledger" / collection_id),
        lock=lock,
        lock_buckets=lambda numbers: hold_buckets(whole, buckets, numbers, longest_s),
    )


def _use_postgres(settings: Settings) -> Ledgers:
    name = require_state_name(settings, _SETTING)
    url = read_database_url(_SETTING, settings.ledger_url, _EXTRA)
    engine = connect_postgres(_SETTING, url, _EXTRA)
    from rag_pipeline.adapters.state.postgres.ledger import (  # noqa: PLC0415  # needs an extra
        PostgresLedger,
    )
    from rag_pipeline.adapters.state.postgres.locks import (  # noqa: PLC0415  # needs an extra
        hold_advisory_locks,
    )

    longest_s, count = settings.ingest_lock_timeout_s, settings.bucket_count

    def lock(timeout_s: float | None = None) -> AbstractContextManager[None]:
        wait_s = longest_s if timeout_s is None else timeout_s
        return hold_advisory_locks(engine, name, None, wait_s)

    def lock_buckets(buckets: Sequence[int]) -> AbstractContextManager[None]:
        return hold_advisory_locks(engine, name, buckets, longest_s)

    return Ledgers(
        open=cache(lambda collection_id: PostgresLedger(engine, name, collection_id, count)),
        drop=lambda collection_id: PostgresLedger(engine, name, collection_id).drop(),
        lock=lock,
        lock_buckets=lock_buckets,
    )
