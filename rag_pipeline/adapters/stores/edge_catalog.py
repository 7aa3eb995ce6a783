"""Catalog of the builds (versions) of an embedded collection, which are folders on disk.

<root>/<build id>/space.json   embedding space of the build
<root>/<build id>/shard/       files of Qdrant Edge
<root>/<build id>/lock         locked by the process that has the shard open
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
    describe_damage,
    find_cell,
    forget_nothing,
    is_build_id,
    list_folder,
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
_WAITING = ".waiting-"  # prefix of the marker file of a waiting process


class EdgeCatalog:
    """A catalog of the builds (versions) of an embedded collection, one folder per build.

    Args:
        root: Folder of the collection. It is created on first use.
        collection: Name of the collection, for messages and new build ids.
        timeout_s: Longest time in seconds to wait for another process that has the store open.
        forget: Function that takes the id of a build and deletes the data kept for it outside the
            store. It is called just before a build is deleted.
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
        """Return the id of the current build, or None if there is none, without opening it."""
        current = self._read_in_use()["current"]
        return current if current and self._is_built(current) else None

    def open_current(
        self, space: EmbeddingSpace | None = None, wait_s: float | None = None
    ) -> EdgeStore:
        """Open the current build, which must have the given embedding space; None accepts any.

        Raises:
            CollectionMissingError: There is no current build.
            SpaceMismatchError: The build has another embedding space.
            StoreLockedError: Another process had the build open for all of `wait_s`.
            StoreError: A file is damaged or cannot be read.
        """
        collection_id = self.current_id()
        if collection_id is None:
            raise CollectionMissingError(self._collection, self._root)
        return self.open(collection_id, space, wait_s)

    def read_space(self, collection_id: str) -> EmbeddingSpace | None:
        """Return the embedding space of a build without opening it; None if there is no build."""
        if not self._is_built(collection_id):
            return None
        with self._file_errors():
            path = self._root / collection_id / "space.json"
            return read_space(path.read_text("utf-8", "replace"))

    def open(
        self, collection_id: str, space: EmbeddingSpace | None = None, wait_s: float | None = None
    ) -> EdgeStore:
        """Open a build by its id; arguments and errors are those of `open_current`."""
        stored = self.read_space(collection_id)
        if stored is None:
            raise CollectionMissingError(collection_id, self._root)
        if space is not None and stored != space:
            remedy = stored.name_remedy(space)
            raise SpaceMismatchError(self._collection, str(stored), str(space), remedy)
        shard, lock = self._load_patiently(
            collection_id, self.timeout_s if wait_s is None else wait_s
        )
        return EdgeStore(shard, stored, self._root / collection_id, lock.release)

    def create(self, space: EmbeddingSpace) -> EdgeStore:
        """Create an empty build and open it; only `switch_to` makes it the current one."""
        collection_id = make_build_id(self._collection)
        lock = self._acquire(collection_id)
        with self._file_errors():
            shard = create_shard(self._root / collection_id / "shard", space.model.dim)
            write_text_atomically(self._root / collection_id / "space.json", write_space(space))
        return EdgeStore(shard, space, self._root / collection_id, lock.release)

    def switch_to(self, collection_id: str) -> None:
        """Make a build the current one, and keep the build that was current as the previous one.

        All other builds are deleted, except those that a process has open.

        Raises:
            CollectionMissingError: There is no such build.
        """
        if not self._is_built(collection_id):
            raise CollectionMissingError(collection_id, self._root)
        before = self.current_id()
        if before == collection_id:
            return
        self._write_in_use(collection_id, before)
        self.sweep()

    def sweep(self) -> None:
        """Delete all builds except the current and the previous one, and outdated marker files.

        A build that a process has open stays until the next call. A process that waits for the
        store has a marker file. A marker older than the longest wait is from a killed process.
        """
        in_use = self._read_in_use()
        with self._file_errors():
            for entry in list_folder(self._root):
                if is_build_id(entry.name, self._collection):
                    if entry.name not in in_use.values():
                        self._delete_unless_open(entry.name)
                elif entry.name.startswith(_WAITING) and not self._is_fresh(entry):
                    entry.unlink(missing_ok=True)

    def find_cells(self) -> list[str]:
        """Return the names of the collections that `rag-pipeline sweep` built for this book."""
        with self._file_errors():
            names = [entry.name for entry in list_folder(self._root.parent)]
        return [name for name in names if find_cell(name, self._collection) == name]

    def drop(self) -> None:
        """Delete the collection with all builds, except builds that a process has open."""
        with self._file_errors():
            names = [entry.name for entry in list_folder(self._root)]
            builds = [name for name in names if is_build_id(name, self._collection)]
            deleted = [self._delete_unless_open(build) for build in builds]
            if all(deleted):
                remove_tree(self._root)

    def roll_back(self) -> str:
        """Swap the current and the previous build, and return the id of the new current one."""
        in_use = self._read_in_use()
        previous = in_use["previous"]
        if previous is None or not self._is_built(previous):
            raise EarlierCollectionMissingError(self._collection, self._root)
        self._write_in_use(previous, in_use["current"])
        return previous

    def is_wanted(self) -> bool:
        """Return True if another process or thread is waiting to open the store."""
        return any(self._is_fresh(mark) for mark in self._root.glob(f"{_WAITING}*"))

    def discard(self, collection_id: str) -> None:
        """Delete a build of this collection, unless it is the current build."""
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
            return False  # the waiting process has just deleted the file
        return age_s <= self.timeout_s + _LONGEST_WAIT_S

    def _is_built(self, collection_id: str) -> bool:
        return (
            is_build_id(collection_id, self._collection)
            and (self._root / collection_id / "space.json").is_file()
        )

    def _acquire(self, collection_id: str) -> FileLock:
        """Lock a build and return the lock; raise `StoreLockedError` at once if it is in use."""
        # Any thread may close the store and release the lock. The system does it after a crash.
        lock = FileLock(self._root / collection_id / "lock", thread_local=False)
        with self._file_errors():
            try:
                lock.acquire(timeout=0)
            except Timeout as error:
                message = f"another process holds {lock.lock_file}. Wait until that process ends"
                raise StoreLockedError(message) from error
        return lock

    def _load(self, collection_id: str) -> tuple[object, FileLock]:
        lock = self._acquire(collection_id)
        try:
            with self._file_errors():
                return load_shard(self._root / collection_id / "shard"), lock
        except BaseException:
            lock.release()
            raise

    def _load_patiently(self, collection_id: str, timeout_s: float) -> tuple[object, FileLock]:
        deadline = time.monotonic() + timeout_s
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
                    mark.touch()  # asks a reading process to close the store between two queries
                stack.callback(mark.unlink, missing_ok=True)
                time.sleep(wait_s)
                wait_s = min(wait_s * 2, _LONGEST_WAIT_S)

    def _describe_wait(self) -> str:
        store = f"the embedded store in {self._root}"
        state = f"had {store} open for {self.timeout_s:g} s" if self.timeout_s else f"{store} open"
        return (
            f"another process has {state}. Wait until that ingest or query ends, raise "
            "STORE_LOCK_TIMEOUT_S, or set QDRANT_URL to a server that processes can share"
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
            raise StoreError(describe_damage(path)) from error
        if not all(entry is None or isinstance(entry, str) for entry in in_use.values()):
            raise StoreError(describe_damage(path))
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
        reason = error.strerror or str(error)
        return (
            f"the embedded store cannot read or write {error.filename or self._root}: {reason}. "
            "Check the files, permissions and free space of DATA_DIR"
        )
