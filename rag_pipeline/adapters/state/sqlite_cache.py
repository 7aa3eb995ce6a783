"""Embedding cache in one SQLite file, which several processes may use at the same time."""

from __future__ import annotations

import os
import sqlite3
import threading
from functools import partial
from typing import TYPE_CHECKING, Final

from rag_pipeline.adapters.sqlite_wal import use_write_ahead_log
from rag_pipeline.adapters.state.damage import is_damage, move_aside, warn_once
from rag_pipeline.adapters.state.vector_packs import dump_rows, load_rows
from rag_pipeline.core.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import TypeVar

    from rag_pipeline.core.vectors import ChunkVectors

    T = TypeVar("T")

_SCHEMA: Final = """
create table if not exists half_embeddings (
    fingerprint text not null,
    text_hash text not null,
    dim integer not null,
    vectors blob not null,
    primary key (fingerprint, text_hash)
) without rowid
"""
_KEPT: Final = """
create temporary table kept (
    fingerprint text not null, text_hash text not null, primary key (fingerprint, text_hash)
) without rowid
"""
_DELETE: Final = """
delete from half_embeddings where not exists (
    select 1 from temp.kept
    where kept.fingerprint = half_embeddings.fingerprint
        and kept.text_hash = half_embeddings.text_hash
)
"""
_BUSY_TIMEOUT_S: Final = 30.0
_PARAMETERS: Final = 500  # per query; the limit of old SQLite versions is 999


class SqliteEmbeddingCache:
    """An embedding cache with one row per embedding model and text in a SQLite file.

    A row contains the vector of the whole text, then the vectors of its windows (groups of words).
    The table of earlier versions, with longer numbers, is deleted; such vectors are read from the
    store instead. A damaged file is renamed with a warning, and a new one is
    begun. In a folder that cannot be written, the file is only read.

    Args:
        path: SQLite file. The file and its folder are created on first use.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def get_many(self, fingerprint: str, text_hashes: Sequence[str]) -> dict[str, ChunkVectors]:
        """Return the cached vectors by text hash; texts without readable vectors are left out.

        Args:
            fingerprint: Fingerprint of the embedding model.
            text_hashes: SHA-256 of each text.

        Raises:
            StoreError: The file cannot be read.
        """
        found: dict[str, ChunkVectors] = {}
        for start in range(0, len(text_hashes), _PARAMETERS):
            page = text_hashes[start : start + _PARAMETERS]
            marks = ",".join("?" * len(page))
            query = (
                "select text_hash, dim, vectors from half_embeddings "  # noqa: S608  # `marks` contains only "?"
                f"where fingerprint = ? and text_hash in ({marks})"
            )
            rows = self._run(partial(_fetch_all, query=query, parameters=(fingerprint, *page)))
            for text_hash, dim, blob in rows:
                vectors = load_rows(blob, dim)
                if vectors is not None:
                    found[text_hash] = vectors
        return found

    def put_many(self, fingerprint: str, vectors: Mapping[str, ChunkVectors]) -> None:
        """Store the vectors of texts, which are given by text hash, in one transaction.

        Raises:
            StoreError: The file cannot be written.
        """
        rows = [
            (fingerprint, text_hash, len(entry.dense), dump_rows(entry))
            for text_hash, entry in vectors.items()
        ]

        def write(connection: sqlite3.Connection) -> None:
            with connection:
                connection.executemany(
                    "insert or replace into half_embeddings values (?, ?, ?, ?)", rows
                )

        self._run(write)

    def prune(self, keep: Mapping[str, Iterable[str]]) -> int:
        """Delete all cached vectors except the given ones, and return how many were deleted.

        Args:
            keep: Text hashes to keep, by the fingerprint of their embedding model.
        """

        def forget(connection: sqlite3.Connection) -> int:
            connection.execute("drop table if exists temp.kept")
            connection.execute(_KEPT)
            with connection:
                kept = ((name, each) for name, hashes in keep.items() for each in hashes)
                connection.executemany("insert or ignore into temp.kept values (?, ?)", kept)
                deleted = connection.execute(_DELETE).rowcount
            connection.execute("drop table temp.kept")
            connection.execute("vacuum")
            return deleted

        return self._run(forget)

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _run(self, action: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock:
            try:
                try:
                    return action(self._open())
                except sqlite3.DatabaseError as error:
                    if not is_damage(error):
                        raise
                    self._begin_again()
                    return action(self._open())
            except (sqlite3.Error, OSError) as error:
                message = (
                    f"the embedding cache {self._path} cannot be used: {error}. Check disk space "
                    "and permissions"
                )
                raise StoreError(message) from error

    def _begin_again(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        warn_once(
            f"the embedding cache {self._path} is damaged. It was renamed to "
            f"{move_aside(self._path).name}. Vectors that the store lacks are computed again"
        )

    def _open(self) -> sqlite3.Connection:
        if self._connection is None and _is_read_only(self._path.parent):
            # The file cannot change. Without "immutable", SQLite would create a file beside it.
            place = (
                f"{self._path.resolve().as_uri()}?immutable=1"
                if self._path.exists()
                else ":memory:"
            )
            self._connection = sqlite3.connect(place, uri=True, check_same_thread=False)
            if place == ":memory:":
                self._connection.execute(_SCHEMA)
        if self._connection is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(
                self._path, timeout=_BUSY_TIMEOUT_S, check_same_thread=False
            )
            try:
                use_write_ahead_log(connection, _BUSY_TIMEOUT_S)
                connection.execute("pragma synchronous = normal")
                connection.execute(_SCHEMA)
                connection.execute("drop table if exists embeddings")
            except sqlite3.Error:
                connection.close()
                raise
            self._connection = connection
        return self._connection


def _is_read_only(folder: Path) -> bool:
    """Return True if a folder exists and cannot be written, such as one on a read-only mount."""
    return folder.is_dir() and not os.access(folder, os.W_OK)


def _fetch_all(
    connection: sqlite3.Connection, query: str, parameters: tuple[str, ...]
) -> list[tuple[str, int, bytes]]:
    return connection.execute(query, parameters).fetchall()
