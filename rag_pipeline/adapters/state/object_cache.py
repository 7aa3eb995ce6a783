"""Embedding cache on an object store, for workers that share no disk."""

from __future__ import annotations

import hashlib
import io
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import numpy as np

from rag_pipeline.adapters.state.objects import (
    delete_object,
    list_objects,
    read_object,
    write_object,
)
from rag_pipeline.adapters.state.vector_packs import (
    HEAD_BYTES,
    PackIndex,
    count_head_bytes,
    dump_pack,
    group_places,
    load_head,
    load_pack,
    load_rows,
)
from rag_pipeline.core.errors import StoreError
from rag_pipeline.core.vectors import ChunkVectors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeVar

    from upath import UPath

    from rag_pipeline.adapters.state.vector_packs import Head, Place

    T = TypeVar("T")
    A = TypeVar("A")

_REQUESTS_AT_A_TIME: Final = 16
_PACK_TEXTS: Final = 512
_SMALL_PACK: Final = 64  # texts; `prune` merges smaller packs
_PACK: Final = ".pack"
_FORMER: Final = ".npy"  # one object for each text, as earlier versions wrote them


class ObjectEmbeddingCache:
    """An embedding cache with packs of vectors on an object store.

    A pack is an object `<hash of the model's fingerprint>/packs/<random name>.pack`. It has the
    vectors of all texts that one call stored, up to 512, so that a call sends few requests. Any
    number of processes may write at the same time, because a pack is written completely or not at
    all, and is never changed. The index of the packs is read from their heads when it is needed.

    Objects `<hash of the fingerprint>/<text hash>.npy` of earlier versions are read too.

    Args:
        root: Folder of the cache on the object store, such as `s3://bucket/prefix/cache`.
    """

    def __init__(self, root: UPath) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._indexes: dict[str, PackIndex] = {}
        self._former: dict[str, frozenset[str]] = {}

    def get_many(self, fingerprint: str, text_hashes: Sequence[str]) -> dict[str, ChunkVectors]:
        """Return the cached vectors by text hash; texts without readable vectors are left out.

        Args:
            fingerprint: Fingerprint of the embedding model.
            text_hashes: SHA-256 of each text.

        Raises:
            StoreError: The object store cannot be read.
        """
        folder = self._folder(fingerprint)
        with self._lock:
            found = self._read_packed(folder, text_hashes)
            lacking = [text_hash for text_hash in text_hashes if text_hash not in found]
            if lacking and self._find_new_packs(folder):
                found |= self._read_packed(folder, lacking)
            return found | self._read_former(folder, lacking)

    def put_many(self, fingerprint: str, vectors: Mapping[str, ChunkVectors]) -> None:
        """Store the vectors of texts, which are given by text hash, in one object per 512 texts.

        If the process is killed meanwhile, texts that are in no object yet are embedded again.

        Raises:
            StoreError: The object store cannot be written.
        """
        with self._lock:
            self._write_packs(self._folder(fingerprint), vectors)

    def prune(self, keep: Mapping[str, Iterable[str]]) -> int:
        """Delete all cached vectors except the given ones, and return how many were deleted.

        Small packs are merged.

        Args:
            keep: Text hashes to keep, by the fingerprint of their embedding model.
        """
        by_folder = {self._folder(name).name: frozenset(hashes) for name, hashes in keep.items()}
        with self._lock:
            self._indexes.clear()
            self._former.clear()
            names = self._call(lambda: [path.name for path in self._root.iterdir()])
            return sum(
                self._prune_folder(self._root / name, by_folder.get(name, frozenset()))
                for name in names
            )

    def close(self) -> None:
        """Do nothing, because nothing stays open between two calls."""

    def _read_packed(self, folder: UPath, text_hashes: Sequence[str]) -> dict[str, ChunkVectors]:
        """Return the vectors that the packs of the index have; forget packs that are gone."""
        index = self._indexes.setdefault(folder.name, PackIndex())
        groups = list(group_places(index.find(text_hashes)))
        found: dict[str, ChunkVectors] = {}
        reads = self._map(partial(_read_group, folder), groups)
        for group, vectors in zip(groups, reads, strict=True):
            if vectors is None:
                index.remove(group[0][1].pack)
            else:
                found |= vectors
        return found

    def _find_new_packs(self, folder: UPath) -> bool:
        """Add the packs to the index that it does not have yet; return True if there are any."""
        index = self._indexes.setdefault(folder.name, PackIndex())
        listed = self._call(lambda: list_objects(folder / "packs"))
        new = sorted(name for name in listed.keys() - index.names if name.endswith(_PACK))
        heads = self._map(lambda name: _read_head(folder / "packs" / name), new)
        for name, head in zip(new, heads, strict=True):
            if head is not None:
                index.add(name, head)
        return bool(new)

    def _read_former(self, folder: UPath, text_hashes: Sequence[str]) -> dict[str, ChunkVectors]:
        """Return the vectors that objects of earlier versions have."""
        if not text_hashes:
            return {}
        if folder.name not in self._former:
            listed = self._call(lambda: list_objects(folder))
            self._former[folder.name] = frozenset(
                name.removesuffix(_FORMER) for name in listed if name.endswith(_FORMER)
            )
        wanted = [name for name in text_hashes if name in self._former[folder.name]]
        found = self._map(lambda name: _read_array(folder / f"{name}{_FORMER}"), wanted)
        return {
            name: vectors
            for name, vectors in zip(wanted, found, strict=True)
            if vectors is not None
        }

    def _write_packs(self, folder: UPath, vectors: Mapping[str, ChunkVectors]) -> None:
        entries = list(vectors.items())
        pages = [dict(entries[at : at + _PACK_TEXTS]) for at in range(0, len(entries), _PACK_TEXTS)]
        packs = [(f"{uuid4().hex}{_PACK}", dump_pack(page)) for page in pages]
        self._map(lambda pack: write_object(folder / "packs" / pack[0], pack[1]), packs)
        index = self._indexes.setdefault(folder.name, PackIndex())
        for name, data in packs:
            head = load_head(data)
            if head is not None:
                index.add(name, head)

    def _prune_folder(self, folder: UPath, keep: frozenset[str]) -> int:
        """Delete the texts of one model that are not in `keep`, and merge its small packs.

        A pack is deleted after its texts are in another pack.
        """
        listed = self._call(lambda: list_objects(folder))
        former = [name for name in listed if name.endswith(_FORMER)]
        gone = [name for name in former if name.removesuffix(_FORMER) not in keep]
        self._map(lambda name: delete_object(folder / name), gone)
        names = sorted(self._call(lambda: list_objects(folder / "packs")))
        heads = self._map(lambda name: _read_head(folder / "packs" / name), names)
        packed, merged, emptied = set[str](), dict[str, ChunkVectors](), list[str]()
        deleted = set[str]()
        for name, head in zip(names, heads, strict=True):
            texts = set(head.text_hashes) if head is not None else set()
            own = (texts & keep) - packed
            deleted |= texts - keep
            packed |= own
            if own == texts and len(own) >= _SMALL_PACK:
                continue
            emptied.append(name)
            if own:
                data = self._call(partial(read_object, folder / "packs" / name))
                merged |= {key: found for key, found in load_pack(data).items() if key in own}
            if len(merged) >= _PACK_TEXTS:
                self._replace_packs(folder, merged, emptied)
                merged, emptied = {}, []
        if len(emptied) > 1 or deleted:  # one small pack alone stays
            self._replace_packs(folder, merged, emptied)
        return len(gone) + len(deleted)

    def _replace_packs(
        self, folder: UPath, vectors: Mapping[str, ChunkVectors], names: Sequence[str]
    ) -> None:
        self._write_packs(folder, vectors)
        self._map(lambda name: delete_object(folder / "packs" / name), names)
        for name in names:
            self._indexes[folder.name].remove(name)

    def _folder(self, fingerprint: str) -> UPath:
        return self._root / hashlib.sha256(fingerprint.encode()).hexdigest()[:16]

    def _map(self, action: Callable[[A], T], entries: Iterable[A]) -> list[T]:
        with ThreadPoolExecutor(_REQUESTS_AT_A_TIME) as workers:
            return self._call(lambda: list(workers.map(action, entries)))

    def _call(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except OSError as error:
            message = (
                f"the embedding cache {self._root} cannot be read or written: {error}. Check "
                "STATE_URL and its credentials"
            )
            raise StoreError(message) from error


def _read_head(path: UPath) -> Head | None:
    """Return the head of a pack; None if it is damaged or was deleted."""
    try:
        start = read_object(path, 0, HEAD_BYTES)
        if len(start) < count_head_bytes(start):
            start = read_object(path, 0, count_head_bytes(start))
    except FileNotFoundError:
        return None
    return load_head(start)


def _read_group(
    folder: UPath, group: Sequence[tuple[str, Place]]
) -> dict[str, ChunkVectors] | None:
    """Return the vectors of texts that are close together in a pack; None if it was deleted."""
    first, last = group[0][1], group[-1][1]
    try:
        data = read_object(folder / "packs" / first.pack, first.start, last.end)
    except FileNotFoundError:
        return None
    found: dict[str, ChunkVectors] = {}
    for text_hash, place in group:
        rows = data[place.start - first.start : place.end - first.start]
        vectors = load_rows(rows, place.dim) if len(rows) == place.end - place.start else None
        if vectors is not None:
            found[text_hash] = vectors
    return found


def _read_array(path: UPath) -> ChunkVectors | None:
    try:
        rows = np.load(io.BytesIO(read_object(path)), allow_pickle=False)
    except (FileNotFoundError, ValueError, EOFError):
        return None
    if rows.ndim != 2 or len(rows) < 2:
        return None
    return ChunkVectors(rows[0], rows[1:])
