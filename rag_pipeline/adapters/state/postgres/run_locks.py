"""Locks in Postgres by which all machines see that the process of a run is alive."""

from __future__ import annotations

import hashlib
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from rag_pipeline.adapters.state.postgres.locks import end_connection
from rag_pipeline.adapters.state.postgres.tables import describe_failures
from rag_pipeline.core.errors import LedgerUnavailableError

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import Connection, Engine

_PROBLEM: Final = "the lock of a run at LEDGER_URL cannot be taken or read"
_LOOK_S: Final = 1.0  # between two looks at the connection of a lock
_SURE_S: Final = 20.0  # less than the 60 s after which the server ends a connection

# A key of 64 bits has the part 1 in pg_locks; the pairs of keys of the other locks have the part 2.
_HELD: Final = sa.text(
    "SELECT DISTINCT (classid::bigint << 32) | objid::bigint FROM pg_locks "
    "WHERE locktype = 'advisory' AND objsubid = 1 AND granted "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


@dataclass(frozen=True, slots=True)
class PostgresRunLocks:
    """The locks of the runs of a book; see `core.protocols.state.RunLocks`.

    Attributes:
        engine: The Postgres database.
        state_name: Name of the book's state, equal on all machines.
    """

    engine: Engine
    state_name: str

    def hold(self, run_id: str) -> PostgresRunLock:
        """Take the lock of a run, and return it."""
        return PostgresRunLock(self.engine, self._key(run_id))

    def find_held(self, run_ids: Collection[str]) -> set[str]:
        """Return the runs whose lock a process holds."""
        with describe_failures(_PROBLEM), self.engine.connect() as connection:
            held = set(connection.execute(_HELD).scalars())
        return {run_id for run_id in run_ids if self._key(run_id) in held}

    def _key(self, run_id: str) -> int:
        """Return a signed number of 64 bits that stands for the run."""
        name = f"rag-pipeline run {self.state_name} {run_id}"
        return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)


class PostgresRunLock:
    """The held lock of a run, on a connection of its own; see `core.protocols.state.RunLock`.

    It is a shared lock, because several processes can work on one run and nobody has to wait.

    A thread looks at the connection each second. If the server restarts or the network fails, the
    book's locks of the run are lost too, and another ingestion may begin. So `check` then ends the
    run before its next document. The thread still takes this lock again, because the run may write
    its last document for a while, and must not be marked as dead meanwhile.

    Args:
        engine: The Postgres database.
        key: Key of the lock, a signed number of 64 bits.

    Raises:
        LedgerUnavailableError: The database cannot be reached.
    """

    def __init__(self, engine: Engine, key: int) -> None:
        self._engine = engine
        self._key = key
        with describe_failures(_PROBLEM):
            self._connection: Connection | None = self._take()
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
            raise LedgerUnavailableError(
                "the connection with the lock of this run was lost, so another ingest may have "
                "begun. Check LEDGER_URL and that the server is running; the next ingest goes on"
            )

    def release(self) -> None:
        """Release the lock."""
        self._stopped.set()
        self._thread.join(timeout=_SURE_S)

    def _is_late(self) -> bool:
        return time.monotonic() - self._seen_at > _SURE_S

    def _take(self) -> Connection:
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        try:
            connection.execute(sa.text("SELECT pg_advisory_lock_shared(:key)"), {"key": self._key})
        except BaseException:
            end_connection(connection)
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
                    end_connection(self._connection)
                    self._connection = None
        if self._connection is not None:
            end_connection(self._connection)
