"""Embeddings on disk by model and text hash, in one SQLite file that several processes may use."""

from __future__ import annotations

import sqlite3
import threading
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from rag_pipeline.core.errors import StoreError
from rag_pipeline.core.vectors import ChunkVectors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import TypeVar

    T = TypeVar("T")

_SCHEMA: Final = """
create table if not exists embeddings (
    fingerprint text not null,
    text_hash text not null,
    dim integer not null,
    vectors blob not null,
    primary key (fingerprint, text_hash)
) without rowid
"""
_BUSY_TIMEOUT_S: Final = 30.0
_PARAMETERS: Final = 500  # of one query; SQLite's limit has been 999 in old builds


class SqliteEmbeddingCache:
    """An `EmbeddingCache`; a row is little-endian float32, the dense vector and then the windows.

    Args:
        path: The file; made on first use, its folder too.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def get_many(self, fingerprint: str, text_hashes: Sequence[str]) -> dict[str, ChunkVectors]:
        """Vectors of those hashes that are there; a damaged row counts as missing."""
        found: dict[str, ChunkVectors] = {}
        for start in range(0, len(text_hashes), _PARAMETERS):
            page = text_hashes[start : start + _PARAMETERS]
            marks = ",".join("?" * len(page))
            query = (
                "select text_hash, dim, vectors from embeddings "  # noqa: S608  # marks are "?" alone
                f"where fingerprint = ? and text_hash in ({marks})"
            )
            rows = self._run(partial(_fetch_all, query=query, parameters=(fingerprint, *page)))
            for text_hash, dim, blob in rows:
                if dim > 0 and len(blob) >= 8 * dim and len(blob) % (4 * dim) == 0:
                    matrix = np.frombuffer(blob, dtype="<f4").reshape(-1, dim)
                    found[text_hash] = ChunkVectors(matrix[0], matrix[1:])
        return found

    def put_many(self, fingerprint: str, vectors: Mapping[str, ChunkVectors]) -> None:
        """Keep vectors in one transaction."""
        rows = [
            (fingerprint, text_hash, len(entry.dense), _to_bytes(entry))
            for text_hash, entry in vectors.items()
        ]

        def write(connection: sqlite3.Connection) -> None:
            with connection:
                connection.executemany(
                    "insert or replace into embeddings values (?, ?, ?, ?)", rows
                )

        self._run(write)

    def prune(self, keep: Mapping[str, frozenset[str]]) -> int:
        """Forget everything but the named hashes of the named fingerprints."""

        def forget(connection: sqlite3.Connection) -> int:
            with connection:
                stored = connection.execute("select fingerprint, text_hash from embeddings")
                gone = [row for row in stored if row[1] not in keep.get(row[0], frozenset())]
                connection.executemany(
                    "delete from embeddings where fingerprint = ? and text_hash = ?", gone
                )
            connection.execute("vacuum")
            return len(gone)

        return self._run(forget)

    def close(self) -> None:
        """Let go of the file; the next call opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _run(self, action: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock:
            try:
                return action(self._open())
            except sqlite3.Error as error:
                message = (
                    f"embedding cache {self._path}: {error}. Free disk space or permissions; a "
                    "damaged file may be deleted, what it held is embedded again"
                )
                raise StoreError(message) from error

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(
                self._path, timeout=_BUSY_TIMEOUT_S, check_same_thread=False
            )
            try:
                connection.execute("pragma journal_mode = wal")
                connection.execute("pragma synchronous = normal")
                connection.execute(_SCHEMA)
            except sqlite3.Error:
                connection.close()
                raise
            self._connection = connection
        return self._connection


def _fetch_all(
    connection: sqlite3.Connection, query: str, parameters: tuple[str, ...]
) -> list[tuple[str, int, bytes]]:
    return connection.execute(query, parameters).fetchall()


def _to_bytes(entry: ChunkVectors) -> bytes:
    return np.vstack([entry.dense[np.newaxis, :], entry.windows]).astype("<f4").tobytes()
