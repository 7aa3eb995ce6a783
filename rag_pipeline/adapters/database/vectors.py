"""The vectors of embedded texts in a database."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from rag_pipeline.core.vectors import STORED_DTYPE, ChunkVectors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rag_pipeline.adapters.database import Connection, Database

_PAGE: Final = 500  # names in a statement; the limit of old SQLite versions is 999
_KEPT_AT_A_TIME: Final = 5_000
_STORE: Final = """
insert into vectors (state_name, fingerprint, text_hash, dim, numbers)
values (:state_name, :fingerprint, :text_hash, :dim, :numbers)
on conflict (state_name, fingerprint, text_hash)
do update set dim = excluded.dim, numbers = excluded.numbers
"""
_KEPT: Final = """
create temporary table kept (
    fingerprint text not null, text_hash text not null, primary key (fingerprint, text_hash)
)
"""
_KEEP: Final = "insert into kept values (:fingerprint, :text_hash) on conflict do nothing"
_DELETE: Final = """
delete from vectors where state_name = :state_name and not exists (
    select 1 from kept
    where kept.fingerprint = vectors.fingerprint and kept.text_hash = vectors.text_hash
)
"""


class SqlEmbeddingCache:
    """An `EmbeddingCache` with one row per embedding model and text.

    A row contains the vector of the whole text, then the vectors of its windows (groups of words).

    Args:
        database: The database.
        state_name: Name of the book's state in the database.
    """

    def __init__(self, database: Database, state_name: str) -> None:
        self._database = database
        self._state_name = state_name

    def get_many(self, fingerprint: str, text_hashes: Sequence[str]) -> dict[str, ChunkVectors]:
        """Return the cached vectors by text hash; texts without readable vectors are left out."""

        def load(connection: Connection) -> dict[str, ChunkVectors]:
            found: dict[str, ChunkVectors] = {}
            for start in range(0, len(text_hashes), _PAGE):
                page = text_hashes[start : start + _PAGE]
                names = {f"h{number}": text_hash for number, text_hash in enumerate(page)}
                query = (
                    "select text_hash, dim, numbers from vectors "
                    "where state_name = :state_name and fingerprint = :fingerprint "
                    f"and text_hash in ({', '.join(f':{name}' for name in names)})"
                )
                key = {"state_name": self._state_name, "fingerprint": fingerprint}
                for text_hash, dim, numbers in connection.rows(query, key | names):
                    vectors = _load_rows(numbers, dim)
                    if vectors is not None:
                        found[text_hash] = vectors
            return found

        return self._database.read(load)

    def put_many(self, fingerprint: str, vectors: Mapping[str, ChunkVectors]) -> None:
        """Store the vectors of texts, which are given by text hash, in one transaction."""
        rows = [
            {
                "state_name": self._state_name,
                "fingerprint": fingerprint,
                "text_hash": text_hash,
                "dim": len(entry.dense),
                "numbers": _dump_rows(entry),
            }
            for text_hash, entry in vectors.items()
        ]
        self._database.write(lambda used: used.change(_STORE, rows), is_durable=False)

    def prune(self, keep: Mapping[str, Iterable[str]]) -> int:
        """Delete all vectors of the book except the given ones; return how many were deleted.

        Args:
            keep: Text hashes to keep, by the fingerprint of their embedding model.
        """
        pairs = (
            {"fingerprint": fingerprint, "text_hash": text_hash}
            for fingerprint, hashes in keep.items()
            for text_hash in hashes
        )

        def delete(connection: Connection) -> int:
            connection.change("drop table if exists kept", {})
            connection.change(_KEPT, {})
            while page := list(islice(pairs, _KEPT_AT_A_TIME)):
                connection.change(_KEEP, page)
            deleted = connection.change(_DELETE, {"state_name": self._state_name})
            connection.change("drop table kept", {})
            return deleted

        deleted = self._database.write(delete)
        self._database.compact()
        return deleted

    def close(self) -> None:
        """Close the database; the next call opens it again."""
        self._database.close()


def _dump_rows(vectors: ChunkVectors) -> bytes:
    rows = np.vstack([vectors.dense[np.newaxis, :], vectors.windows])
    return rows.astype(STORED_DTYPE).tobytes()


def _load_rows(numbers: bytes, dim: int) -> ChunkVectors | None:
    """Return the vectors of one text; None if they are damaged or incomplete."""
    row_bytes = np.dtype(STORED_DTYPE).itemsize * dim
    if dim < 1 or len(numbers) < 2 * row_bytes or len(numbers) % row_bytes:
        return None
    matrix = np.frombuffer(numbers, dtype=STORED_DTYPE).reshape(-1, dim).astype(np.float32)
    return ChunkVectors(matrix[0], matrix[1:])
