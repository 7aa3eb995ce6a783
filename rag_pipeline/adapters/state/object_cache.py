"""Embedding cache on an object store, for workers that share no disk."""

from __future__ import annotations

import hashlib
import io
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import numpy as np

from rag_pipeline.core.errors import StoreError
from rag_pipeline.core.vectors import ChunkVectors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeVar

    from upath import UPath

    T = TypeVar("T")
    A = TypeVar("A")

_REQUESTS_AT_A_TIME: Final = 16


class ObjectEmbeddingCache:
    """An embedding cache with one object per embedding model and text on an object store.

    The object `<hash of the model's fingerprint>/<text hash>.npy` contains float32 rows: the vector
    of the whole text, then those of its windows (groups of words). Any number of processes may
    write at the same time, because objects are written completely or not at all, and the same text
    gives the same object.

    Args:
        root: Folder of the cache on the object store, such as `s3://bucket/prefix/cache`.
    """

    def __init__(self, root: UPath) -> None:
        self._root = root

    def get_many(self, fingerprint: str, text_hashes: Sequence[str]) -> dict[str, ChunkVectors]:
        """Return the cached vectors by text hash; texts without readable vectors are left out.

        Args:
            fingerprint: Fingerprint of the embedding model.
            text_hashes: SHA-256 of each text.

        Raises:
            StoreError: The object store cannot be read.
        """
        folder = self._folder(fingerprint)
        found = self._map(lambda text_hash: _read(folder / f"{text_hash}.npy"), text_hashes)
        pairs = zip(text_hashes, found, strict=True)
        return {text_hash: vectors for text_hash, vectors in pairs if vectors is not None}

    def put_many(self, fingerprint: str, vectors: Mapping[str, ChunkVectors]) -> None:
        """Store the vectors of each text, which are given by text hash, in one object per text.

        If the process is killed meanwhile, texts that have no object yet are embedded again later.

        Raises:
            StoreError: The object store cannot be written.
        """
        folder = self._folder(fingerprint)
        folder.mkdir(parents=True, exist_ok=True)

        def write(entry: tuple[str, ChunkVectors]) -> None:
            buffer = io.BytesIO()
            rows = np.vstack([entry[1].dense[np.newaxis, :], entry[1].windows])
            np.save(buffer, rows.astype(np.float32), allow_pickle=False)
            (folder / f"{entry[0]}.npy").write_bytes(buffer.getvalue())

        self._map(write, vectors.items())

    def prune(self, keep: Mapping[str, frozenset[str]]) -> int:
        """Delete all cached vectors except the given ones, and return how many were deleted.

        Args:
            keep: Text hashes to keep, by the fingerprint of their embedding model.
        """
        kept = {self._folder(name).name: hashes for name, hashes in keep.items()}
        gone = [
            path
            for path in self._root.glob("*/*.npy")
            if path.stem not in kept.get(path.parent.name, frozenset())
        ]
        self._map(lambda path: path.unlink(missing_ok=True), gone)
        return len(gone)

    def close(self) -> None:
        """Do nothing, because nothing stays open between two calls."""

    def _folder(self, fingerprint: str) -> UPath:
        return self._root / hashlib.sha256(fingerprint.encode()).hexdigest()[:16]

    def _map(self, action: Callable[[A], T], entries: Iterable[A]) -> list[T]:
        try:
            with ThreadPoolExecutor(_REQUESTS_AT_A_TIME) as workers:
                return list(workers.map(action, entries))
        except OSError as error:
            message = (
                f"the embedding cache {self._root} cannot be read or written: {error}. Check "
                "STATE_URL and its credentials"
            )
            raise StoreError(message) from error


def _read(path: UPath) -> ChunkVectors | None:
    try:
        rows = np.load(io.BytesIO(path.read_bytes()), allow_pickle=False)
    except (FileNotFoundError, ValueError, EOFError):
        return None
    if rows.ndim != 2 or len(rows) < 2:
        return None
    return ChunkVectors(rows[0], rows[1:])
