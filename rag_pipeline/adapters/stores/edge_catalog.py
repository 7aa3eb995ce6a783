"""The builds of an embedded collection on disk, and which one is in use.

<root>/<build id>/space.json   what it was built with
<root>/<build id>/shard/       Qdrant Edge's files
<root>/<build id>/lock         held by the process that has the shard open
<root>/in-use.json             {"current": id, "previous": id or null}, replaced in one step
"""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from rag_pipeline.adapters.state.files import remove_tree, write_text_atomically
from rag_pipeline.adapters.stores.builds import (
    find_cell,
    forget_nothing,
    is_build_id,
    make_build_id,
    read_space,
    write_space,
)
from rag_pipeline.adapters.stores.edge_store import EdgeStore, create_shard, load_shard
from rag_pipeline.core.errors import (
    CollectionMissingError,
    EarlierCollectionMissingError,
    SpaceMismatchError,
    StoreError,
    StoreLockedError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rag_pipeline.adapters.stores.builds import Forget
    from rag_pipeline.core.vectors import EmbeddingSpace

_FIRST_WAIT_S = 0.02
_LONGEST_WAIT_S = 0.25
_WAITING = ".waiting-"  # begins the name of a waiting process's mark in the root


class EdgeCatalog:
    """A `CollectionCatalog` of folders below one root.

    Args:
        root: Folder of this collection; made on first use.
        collection: Name for messages and new ids.
        timeout_s: How long to wait for another process that holds the store.
        forget: Called with the id of a build before it is deleted.
    """

    is_exclusive = True

    def __init__(
        self,
        root: Path,
        collection: str,
        timeout_s: float,
        forget: Forget = forget_nothing,
    ) -> None:
        self._root = root
        self._collection = collection
        self.timeout_s = timeout_s
        self._forget = forget

    def current_id(self) -> str | None:
        """Id of the collection in use, read from one small file."""
        current = self._read_in_use()["current"]
        return current if current and self._is_built(current) else None

    def open_current(self, space: EmbeddingSpace | None = None) -> EdgeStore:
        """Open the collection in use; see `CollectionCatalog.open_current`."""
        collection_id = self.current_id()
        if collection_id is None:
            raise CollectionMissingError(self._collection, str(self._root))
        return self.open(collection_id, space)

    def open(self, collection_id: str, space: EmbeddingSpace | None = None) -> EdgeStore:
        """Open a collection by id; see `CollectionCatalog.open`."""
        if not self._is_built(collection_id):
            raise CollectionMissingError(collection_id, str(self._root))
        with self._file_errors():
            text = (self._root / collection_id / "space.json").read_text("utf-8", "replace")
        stored = read_space(text)
        if space is not None and stored != space:
            raise SpaceMismatchError(self._collection, str(stored), str(space))
        shard, lock = self._load_patiently(collection_id)
        return EdgeStore(shard, stored, self._root / collection_id, lock.release)

    def create(self, space: EmbeddingSpace) -> EdgeStore:
        """Make an empty collection beside the one in use."""
        collection_id = make_build_id(self._collection)
        lock = self._acquire(collection_id)
        with self._file_errors():
            shard = create_shard(self._root / collection_id / "shard", space.model.dim)
            write_text_atomically(self._root / collection_id / "space.json", write_space(space))
        return EdgeStore(shard, space, self._root / collection_id, lock.release)

    def switch_to(self, collection_id: str) -> None:
        """Put a collection in use and delete all but it and the one before."""
        if not self._is_built(collection_id):
            raise CollectionMissingError(collection_id, str(self._root))
        before = self.current_id()
        if before == collection_id:
            return
        self._write_in_use(collection_id, before)
        self.sweep()

    def sweep(self) -> None:
        """Delete all builds but the one in use and the one before, and marks of processes that
        were killed while they waited; a build that a process has open waits for the next sweep.
        """
        in_use = self._read_in_use()
        with self._file_errors():
            for entry in _list(self._root):
                if is_build_id(entry.name, self._collection):
                    if entry.name not in in_use.values():
                        self._delete_unless_open(entry.name)
                elif entry.name.startswith(_WAITING) and not self._is_fresh(entry):
                    entry.unlink(missing_ok=True)

    def find_cells(self) -> list[str]:
        """Names of the collections of designs that lie beside this one."""
        with self._file_errors():
            names = [entry.name for entry in _list(self._root.parent)]
        return [name for name in names if find_cell(name, self._collection) == name]

    def drop(self) -> None:
        """Delete all builds and the root, but for a build that a process has open."""
        with self._file_errors():
            names = [entry.name for entry in _list(self._root)]
            builds = [name for name in names if is_build_id(name, self._collection)]
            deleted = [self._delete_unless_open(build) for build in builds]
            if all(deleted):
                remove_tree(self._root)

    def roll_back(self) -> str:
        """Swap the collection in use with the one before."""
        in_use = self._read_in_use()
        previous = in_use["previous"]
        if previous is None or not self._is_built(previous):
            raise EarlierCollectionMissingError(self._collection, str(self._root))
        self._write_in_use(previous, in_use["current"])
        return previous

    def is_wanted(self) -> bool:
        """Whether another session waits for the store; a killed one's mark soon stops counting."""
        return any(self._is_fresh(mark) for mark in self._root.glob(f"{_WAITING}*"))

    def discard(self, collection_id: str) -> None:
        """Delete a collection's folder."""
        if collection_id != self.current_id() and is_build_id(collection_id, self._collection):
            self._delete(collection_id)

    def _delete(self, collection_id: str) -> None:
        self._forget(collection_id)
        remove_tree(self._root / collection_id)

    def _delete_unless_open(self, collection_id: str) -> bool:
        try:
            lock = self._acquire(collection_id)
        except StoreLockedError:
            return False
        try:
            self._delete(collection_id)
        finally:
            lock.release()
        return True

    def _is_fresh(self, mark: Path) -> bool:
        try:
            age_s = time.time() - mark.stat().st_mtime
        except OSError:
            return False  # it went while it was looked at: the wait is over
        return age_s <= self.timeout_s + _LONGEST_WAIT_S

    def _is_built(self, collection_id: str) -> bool:
        return (
            is_build_id(collection_id, self._collection)
            and (self._root / collection_id / "space.json").is_file()
        )

    def _acquire(self, collection_id: str) -> FileLock:
        """Keep other processes out of a build; raises `StoreLockedError` where one is in it."""
        # Let go of by whichever thread closes the store, and by the system where a process dies.
        lock = FileLock(self._root / collection_id / "lock", thread_local=False)
        with self._file_errors():
            try:
                lock.acquire(timeout=0)
            except Timeout as error:
                raise StoreLockedError(self._describe_wait()) from error
        return lock

    def _load(self, collection_id: str) -> tuple[object, FileLock]:
        lock = self._acquire(collection_id)
        try:
            with self._file_errors():
                return load_shard(self._root / collection_id / "shard"), lock
        except BaseException:
            lock.release()
            raise

    def _load_patiently(self, collection_id: str) -> tuple[object, FileLock]:
        deadline = time.monotonic() + self.timeout_s
        wait_s = _FIRST_WAIT_S
        mark = self._root / f"{_WAITING}{os.getpid()}-{threading.get_ident()}"
        with ExitStack() as stack:
            while True:
                try:
                    return self._load(collection_id)
                except StoreLockedError as error:
                    if time.monotonic() + wait_s > deadline:
                        raise StoreLockedError(self._describe_wait()) from error
                with self._file_errors():
                    mark.touch()  # asks a process that only reads to let go between two queries
                stack.callback(mark.unlink, missing_ok=True)
                time.sleep(wait_s)
                wait_s = min(wait_s * 2, _LONGEST_WAIT_S)

    def _describe_wait(self) -> str:
        return (
            f"the embedded store in {self._root} was held by another process for "
            f"{self.timeout_s:g} s. Wait for that ingest or query to end, raise "
            "STORE_LOCK_TIMEOUT_S, or set QDRANT_URL to share one server"
        )

    def _read_in_use(self) -> dict[str, str | None]:
        path = self._root / "in-use.json"
        try:
            stored = json.loads(path.read_text("utf-8"))
            in_use = {"current": stored["current"], "previous": stored["previous"]}
        except FileNotFoundError:
            return {"current": None, "previous": None}
        except OSError as error:
            raise StoreError(self._describe(error)) from error
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(_describe_damage(path)) from error
        if not all(entry is None or isinstance(entry, str) for entry in in_use.values()):
            raise StoreError(_describe_damage(path))
        return in_use

    def _write_in_use(self, current: str, previous: str | None) -> None:
        text = json.dumps({"current": current, "previous": previous}, indent=1) + "\n"
        with self._file_errors():
            write_text_atomically(self._root / "in-use.json", text)

    @contextmanager
    def _file_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(self._describe(error)) from error

    def _describe(self, error: OSError) -> str:
        reason = error.strerror or type(error).__name__
        return (
            f"the embedded store in {self._root} cannot be read or written: {reason}. Check the "
            "rights and the free space of DATA_DIR"
        )


def _list(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _describe_damage(path: Path) -> str:
    return f"{path} is damaged. Delete it and run `rag-pipeline ingest --rebuild`"
