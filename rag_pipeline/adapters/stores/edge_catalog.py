"""Catalog of the builds (versions) of an embedded collection, which are folders on disk.

<root>/<build id>/space.json   embedding space of the build
<root>/<build id>/shard/       files of Qdrant Edge
<root>/<build id>/lock         locked by the process that has the shard open
<root>/in-use.json             {"current": id, "previous": id or null}, replaced in one step
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

from rag_pipeline.adapters.local_files import remove_tree, warn_once, write_text_atomically
from rag_pipeline.adapters.stores.builds import (
    LockedCatalog,
    alone,
    find_cell,
    forget_nothing,
    is_build_id,
    list_folder,
    make_build_id,
    read_space,
    read_stamp,
    write_space,
)
from rag_pipeline.adapters.stores.edge_opening import (
    IN_USE,
    LONGEST_WAIT_S,
    WAITING,
    describe_file_errors,
    find_last_change,
    lock_build,
    open_patiently,
    read_in_use,
    write_in_use,
)
from rag_pipeline.adapters.stores.edge_store import EdgeStore, create_shard
from rag_pipeline.core.errors import (
    CollectionMissingError,
    EarlierCollectionMissingError,
    SpaceMismatchError,
    StoreDamagedError,
    StoreLockedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rag_pipeline.adapters.stores.builds import Forget, TakeLock
    from rag_pipeline.core.vectors import EmbeddingSpace


class EdgeCatalog(LockedCatalog):
    """A catalog of the builds (versions) of an embedded collection, one folder per build.

    Args:
        root: Folder of the collection. It is created on first use.
        collection: Name of the collection, for messages and new build ids.
        timeout_s: Longest time in seconds to wait for another process that has the store open.
        forget: Function that takes the id of a build and deletes the data kept for it outside the
            store. It is called just before a build is deleted.
        describe_others: Function that returns a sentence about other indexes, which ends the error
            message about a missing collection.
        lock: Function that returns the lock for methods that create, switch or delete builds.
    """

    is_exclusive = True

    def __init__(
        self,
        root: Path,
        collection: str,
        timeout_s: float,
        forget: Forget = forget_nothing,
        describe_others: Callable[[], str] = str,
        lock: TakeLock = nullcontext,
    ) -> None:
        super().__init__(lock)
        self._root = root
        self._collection = collection
        self.timeout_s = timeout_s
        self._forget = forget
        self._describe_others = describe_others
        self._copied: tuple[Path, int] | None = None

    def current_id(self) -> str | None:
        """Return the id of the current build, or None if there is none, without opening it."""
        current = read_in_use(self._root)["current"]
        if not current or not is_build_id(current, self._collection):
            return None
        return current if (self._root / current).is_dir() else None

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
            raise CollectionMissingError(self._collection, self._root, self._describe_others())
        return self.open(collection_id, space, wait_s)

    def read_space(self, collection_id: str) -> EmbeddingSpace | None:
        """Return the embedding space of a build without opening it; None if there is no build.

        Raises:
            StoreDamagedError: The file with the embedding space is damaged or missing.
        """
        folder = self._root / collection_id
        if not is_build_id(collection_id, self._collection) or not folder.is_dir():
            return None
        with describe_file_errors(self._root):
            try:
                return read_space(self._locate_space(collection_id).read_text("utf-8", "replace"))
            except FileNotFoundError as error:
                raise StoreDamagedError(f"{error.filename} is missing") from error

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
        folder = self._root / collection_id
        opened = open_patiently(folder, self.timeout_s, wait_s)
        self._copied = None if opened.copied_at_ns is None else (folder, opened.copied_at_ns)
        return EdgeStore(opened.shard, stored, folder, opened.release)

    @alone
    def create(self, space: EmbeddingSpace) -> EdgeStore:
        """Create an empty build and open it; only `switch_to` makes it the current one."""
        collection_id = make_build_id(self._collection)
        with describe_file_errors(self._root):
            lock = lock_build(self._root / collection_id)
            shard = create_shard(self._root / collection_id / "shard", space.model.dim)
            write_text_atomically(self._locate_space(collection_id), write_space(space))
        return EdgeStore(shard, space, self._root / collection_id, lock.release)

    @alone
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
        write_in_use(self._root, collection_id, before)
        self.sweep()

    @alone
    def sweep(self) -> None:
        """Delete all builds except the current and the previous one, and outdated marker files.

        A build that a process has open stays until the next call. A process that waits for the
        store has a marker file. A marker older than the longest wait is from a killed process.
        """
        in_use = read_in_use(self._root)
        with describe_file_errors(self._root):
            for entry in list_folder(self._root):
                if is_build_id(entry.name, self._collection):
                    if entry.name not in in_use.values():
                        self._delete_unless_open(entry.name)
                elif entry.name.startswith(WAITING) and not self._is_fresh(entry):
                    entry.unlink(missing_ok=True)

    @alone
    def recover(self) -> None:
        """Find the current build again if the file that names it is damaged or missing.

        The newest build becomes the current one and the one before it the previous one, with a
        warning. The next ingestion completes a build that a killed rebuild left behind.
        """
        try:
            if read_in_use(self._root)["current"] is not None:
                return
            problem = "is missing"
        except StoreDamagedError:
            problem = "is damaged"
        with describe_file_errors(self._root):
            names = [entry.name for entry in list_folder(self._root)]
            builds = [name for name in names if self._is_built(name)]
            builds.sort(
                key=lambda name: (read_stamp(name), self._locate_space(name).stat().st_mtime_ns)
            )
        if builds:
            write_in_use(self._root, builds[-1], builds[-2] if len(builds) > 1 else None)
            warn_once(
                f"{self._root / IN_USE} {problem}. Its newest collection {builds[-1]} is used"
            )
        elif problem == "is damaged":
            (self._root / IN_USE).unlink()

    def find_cells(self) -> list[str]:
        """Return the names of the collections that `rag-pipeline sweep` built for this book."""
        with describe_file_errors(self._root):
            names = [entry.name for entry in list_folder(self._root.parent)]
        return [name for name in names if find_cell(name, self._collection) == name]

    @alone
    def drop(self) -> None:
        """Delete the collection with all builds, except builds that a process has open."""
        with describe_file_errors(self._root):
            names = [entry.name for entry in list_folder(self._root)]
            builds = [name for name in names if is_build_id(name, self._collection)]
            deleted = [self._delete_unless_open(build) for build in builds]
            if all(deleted):
                remove_tree(self._root)

    @alone
    def roll_back(self) -> str:
        """Swap the current and the previous build, and return the id of the new current one."""
        in_use = read_in_use(self._root)
        previous = in_use["previous"]
        if previous is None or not self._is_built(previous):
            raise EarlierCollectionMissingError(self._collection, self._root)
        write_in_use(self._root, previous, in_use["current"])
        return previous

    def end_loading(self, collection_id: str) -> None:
        """Do nothing, because the embedded store has no graph until `optimize` is called."""

    def is_wanted(self) -> bool:
        """Return True if another process or thread is waiting to open the store.

        For an open copy of a build, return True if the build has changed since it was copied.
        """
        if self._copied is not None:
            folder, copied_at_ns = self._copied
            return find_last_change(folder) > copied_at_ns
        return any(self._is_fresh(mark) for mark in self._root.glob(f"{WAITING}*"))

    @alone
    def discard(self, collection_id: str) -> None:
        """Delete a build of this collection, unless it is the current build."""
        if collection_id != self.current_id() and is_build_id(collection_id, self._collection):
            self._delete(collection_id)

    def _delete(self, collection_id: str) -> None:
        self._forget(collection_id)
        remove_tree(self._root / collection_id)

    def _delete_unless_open(self, collection_id: str) -> bool:
        try:
            lock = lock_build(self._root / collection_id)
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
        return age_s <= self.timeout_s + LONGEST_WAIT_S

    def _is_built(self, collection_id: str) -> bool:
        return (
            is_build_id(collection_id, self._collection)
            and self._locate_space(collection_id).is_file()
        )

    def _locate_space(self, collection_id: str) -> Path:
        return self._root / collection_id / "space.json"
