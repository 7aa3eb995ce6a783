"""Catalog of the builds (versions) of an embedded collection, which are folders on disk.

<root>/<build id>/space.json   embedding space of the build
<root>/<build id>/shard/       files of Qdrant Edge
<root>/<build id>/lock         locked by the process that has the shard open
<root>/in-use.json             {"current": id, "previous": id or null}, replaced in one step
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import threading
import time
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from rag_pipeline.adapters.local_files import (
    hold_lock,
    write_text_atomically,
)
from rag_pipeline.adapters.stores.builds import (
    BuildCatalog,
    alone,
    find_cell,
    make_build_id,
    read_space,
    read_stamp,
    write_space,
)
from rag_pipeline.adapters.stores.edge_store import EdgeStore, check_space, create_shard, load_shard
from rag_pipeline.core.errors import (
    CollectionMissingError,
    StoreDamagedError,
    StoreError,
    StoreLockedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from rag_pipeline.adapters.stores.builds import Forget, TakeLock
    from rag_pipeline.core.errors import RagPipelineError
    from rag_pipeline.core.vectors import EmbeddingSpace


WAITING: Final = ".waiting-"
"""Prefix of the marker file of a process that waits until a build is closed."""

LONGEST_WAIT_S: Final = 0.25
"""Longest time between two attempts to open a build."""

_FIRST_WAIT_S: Final = 0.02
_NOT_WRITABLE: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_LOCKED_ADVICE: Final = "Wait until that process ends"
_MORE_ROOM: Final = "Free disk space, or set TMPDIR to a folder with more space"


def open_patiently(
    folder: Path, space: EmbeddingSpace, timeout_s: float, wait_s: float | None = None
) -> EdgeStore:
    """Open a build as `open_build` does, and wait while another process has it open.

    Args:
        folder: Folder of the build.
        space: Embedding space of the build.
        timeout_s: The setting STORE_LOCK_TIMEOUT_S, for the error message.
        wait_s: Longest wait in seconds; None for `timeout_s`.

    Raises:
        StoreLockedError: Another process had the build open for all of `wait_s`.
        StoreDamagedError: The shard is damaged.
        StoreError: The files cannot be read.
    """
    deadline = time.monotonic() + (timeout_s if wait_s is None else wait_s)
    pause_s = _FIRST_WAIT_S
    mark = folder.parent / f"{WAITING}{os.getpid()}-{threading.get_ident()}"
    with ExitStack() as stack:
        while True:
            try:
                with describe_file_errors(folder):
                    return open_build(folder, space)
            except StoreLockedError as error:
                if time.monotonic() + pause_s > deadline:
                    raise _describe_wait(folder.parent, timeout_s) from error
            with suppress(OSError):  # a disk that this process cannot write
                mark.touch()  # asks a reading process to close the store between two queries
                stack.callback(mark.unlink, missing_ok=True)
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_WAIT_S)


def open_build(folder: Path, space: EmbeddingSpace) -> EdgeStore:
    """Open a build for this process only, or a copy of it if this process cannot write it.

    Raises:
        StoreLockedError: Another process has the build open.
        StoreDamagedError: The shard is damaged.
        OSError: The files cannot be read.
    """
    try:
        lock = lock_build(folder)
    except OSError as error:
        if error.errno not in _NOT_WRITABLE:
            raise
        return _open_copy(folder, space)
    try:
        return EdgeStore(load_shard(folder / "shard"), space, folder, lock.close)
    except BaseException:
        lock.close()
        raise


def lock_build(folder: Path) -> ExitStack:
    """Lock a build. Closing the result releases the lock, and so does the end of the process.

    Raises:
        StoreLockedError: Another process has the build open. This function does not wait.
        OSError: The lock file cannot be written.
    """
    lock = ExitStack()
    lock.enter_context(hold_lock(folder / "lock", 0.0, _LOCKED_ADVICE))
    return lock


def find_last_change(folder: Path) -> int:
    """Return the time of the last change of the files of a build, in nanoseconds."""
    return max((file.stat().st_mtime_ns for file in _list_files(folder)), default=0)


@contextmanager
def describe_file_errors(root: Path) -> Iterator[None]:
    """Convert an OSError in the `with` block to a StoreError that names the file, or `root`."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreError(
            f"the embedded store cannot read or write {error.filename or root}: {reason}. Check "
            "the files, permissions and free space of DATA_DIR"
        ) from error


def _open_copy(folder: Path, space: EmbeddingSpace) -> EdgeStore:
    copy = TemporaryDirectory(prefix="rag-pipeline-", ignore_cleanup_errors=True)
    shard = Path(copy.name, "shard")
    lock = folder / "lock"
    held = hold_lock(lock, 0.0, _LOCKED_ADVICE, shared=True) if lock.exists() else nullcontext()
    try:
        with held:
            blocks = sum(file.stat().st_blocks for file in _list_files(folder))  # holes have none
            check_space(Path(copy.name), blocks * 512, _MORE_ROOM)
            copied_at_ns = find_last_change(folder)
            shutil.copytree(folder / "shard", shard, copy_function=_copy_without_holes)
        shard.chmod(0o700)
        return EdgeStore(load_shard(shard, _MORE_ROOM), space, folder, copy.cleanup, copied_at_ns)
    except BaseException:
        copy.cleanup()
        raise


def _describe_wait(root: Path, timeout_s: float) -> StoreLockedError:
    store = f"the embedded store in {root}"
    state = f"had {store} open for {timeout_s:g} s" if timeout_s else f"{store} open"
    return StoreLockedError(
        f"another process has {state}. Wait until that ingest or query ends, raise "
        "STORE_LOCK_TIMEOUT_S, or set QDRANT_URL to a server that processes can share"
    )


def _list_files(folder: Path) -> list[Path]:
    return [file for file in (folder / "shard").rglob("*") if file.is_file()]


def _copy_without_holes(source: str, target: str) -> None:
    """Copy a file; its holes stay holes, because the engine reserves far more than it uses."""
    with Path(source).open("rb", 0) as reader, Path(target).open("wb", 0) as writer:
        size = os.fstat(reader.fileno()).st_size
        writer.truncate(size)
        end = 0
        while end < size:
            try:
                start = reader.seek(end, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:  # only a hole is left
                    break
                raise
            end = reader.seek(start, os.SEEK_HOLE)
            reader.seek(start)
            writer.seek(start)
            while start < end:
                start += writer.write(reader.read(min(end - start, 2**20)))


IN_USE: Final = "in-use.json"
"""Name of the file in the folder of the collection."""

_NONE_IN_USE: Final = {"current": None, "previous": None}


class EdgeCatalog(BuildCatalog):
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
        forget: Forget = lambda _: None,
        describe_others: Callable[[], str] = str,
        lock: TakeLock = nullcontext,
    ) -> None:
        super().__init__(collection, root, forget, lock)
        self._root = root
        self.timeout_s = timeout_s
        self._describe_others = describe_others
        self._opened: EdgeStore | None = None

    def current_id(self) -> str | None:
        """Return the id of the current build without opening the build; None if there is none."""
        current, _ = self._read_in_use()
        if not current or not self._owns(current):
            return None
        return current if (self._root / current).is_dir() else None

    def read_space(self, collection_id: str) -> EmbeddingSpace | None:
        """Return the embedding space of a build without opening it; None if there is no build.

        Raises:
            StoreDamagedError: The file with the embedding space is damaged or missing.
        """
        folder = self._root / collection_id
        if not self._owns(collection_id) or not folder.is_dir():
            return None
        with describe_file_errors(self._root):
            try:
                return read_space(self._locate_space(collection_id).read_text("utf-8", "replace"))
            except FileNotFoundError as error:
                raise StoreDamagedError(f"{error.filename} is missing") from error

    @alone
    def create(self, space: EmbeddingSpace) -> EdgeStore:
        """Create an empty build and open it; only `switch_to` makes it the current one."""
        collection_id = make_build_id(self._collection)
        with describe_file_errors(self._root):
            lock = lock_build(self._root / collection_id)
            shard = create_shard(self._root / collection_id / "shard", space.model.dim)
            write_text_atomically(self._locate_space(collection_id), write_space(space))
        return EdgeStore(shard, space, self._root / collection_id, lock.close)

    @alone
    def sweep(self) -> None:
        """Delete all builds except the current and the previous one, and outdated marker files.

        A build that a process has open stays until the next call. A process that waits for the
        store has a marker file. A marker older than the longest wait is from a killed process.
        """
        self._delete_builds(self._read_in_use())

    @alone
    def recover(self) -> None:
        """Find the current build again if the file that names it is damaged or missing.

        The newest build becomes the current one and the one before it the previous one, with a
        warning. The next ingestion completes a build that a killed rebuild left behind.
        """
        path = self._root / IN_USE
        try:
            if self._read_in_use()[0] is not None:
                return
            problem = "is missing"
        except StoreDamagedError:
            problem = "is damaged"
        builds = [name for name in self._list_builds() if self._is_built(name)]
        with describe_file_errors(self._root):
            builds.sort(
                key=lambda name: (read_stamp(name), self._locate_space(name).stat().st_mtime_ns)
            )
        self._use_newest(builds, f"{path} {problem}. Its newest collection")
        if not builds:
            path.unlink(missing_ok=True)

    def find_cells(self) -> list[str]:
        """Return the names of the collections that `rag-pipeline sweep` built for this book."""
        names = self._list_names(self._root.parent)
        return [name for name in names if find_cell(name, self._collection) == name]

    @alone
    def drop(self) -> None:
        """Delete the collection with all builds, except builds that a process has open."""
        super().drop()
        if not self._list_builds():
            shutil.rmtree(self._root, ignore_errors=True)

    def end_loading(self, collection_id: str, *, is_empty_left: bool = False) -> None:
        """Do nothing, because the embedded store has no graph until `optimize` is called."""

    def is_wanted(self) -> bool:
        """Return True if another process or thread is waiting to open the store.

        For an open copy of a build, return True if the build has changed since it was copied.
        """
        if self._opened is not None and self._opened.copied_at_ns is not None:
            folder = self._root / self._opened.collection_id
            return find_last_change(folder) > self._opened.copied_at_ns
        return any(self._is_fresh(mark) for mark in self._root.glob(f"{WAITING}*"))

    def _open(self, collection_id: str, space: EmbeddingSpace, wait_s: float | None) -> EdgeStore:
        self._opened = open_patiently(self._root / collection_id, space, self.timeout_s, wait_s)
        return self._opened

    def _describe_missing(self, collection_id: str = "") -> RagPipelineError:
        if collection_id:
            return CollectionMissingError(collection_id, self._root)
        return CollectionMissingError(self._collection, self._root, self._describe_others())

    def _read_in_use(self) -> tuple[str | None, str | None]:
        """Return the ids of the current and the previous build; None for one that is not set.

        Raises:
            StoreDamagedError: The file is damaged.
            StoreError: The file cannot be read.
        """
        path = self._root / IN_USE
        try:
            with describe_file_errors(self._root):
                stored = json.loads(path.read_text("utf-8")) if path.exists() else _NONE_IN_USE
            in_use = stored["current"], stored["previous"]
        except (ValueError, KeyError, TypeError) as error:
            raise StoreDamagedError(f"{path} cannot be read") from error
        if not all(entry is None or isinstance(entry, str) for entry in in_use):
            raise StoreDamagedError(f"{path} cannot be read")
        return in_use

    def _write_in_use(self, current: str, previous: str | None) -> None:
        text = json.dumps({"current": current, "previous": previous}, indent=1) + "\n"
        with describe_file_errors(self._root):
            write_text_atomically(self._root / IN_USE, text)

    def _list_builds(self) -> list[str]:
        return [name for name in self._list_names(self._root) if self._owns(name)]

    def _list_names(self, folder: Path) -> list[str]:
        with describe_file_errors(self._root):
            return [entry.name for entry in folder.iterdir()] if folder.is_dir() else []

    def _delete_builds(self, kept: Collection[str | None]) -> None:
        super()._delete_builds(kept)
        with describe_file_errors(self._root):
            for mark in self._root.glob(f"{WAITING}*"):
                if not self._is_fresh(mark):
                    mark.unlink(missing_ok=True)

    def _delete(self, collection_id: str) -> None:
        self._forget(collection_id)
        shutil.rmtree(self._root / collection_id, ignore_errors=True)

    def _delete_unless_open(self, collection_id: str) -> None:
        with describe_file_errors(self._root):
            try:
                lock = lock_build(self._root / collection_id)
            except StoreLockedError:
                return
            with lock:
                self._delete(collection_id)

    def _is_fresh(self, mark: Path) -> bool:
        try:
            age_s = time.time() - mark.stat().st_mtime
        except OSError:
            return False  # the waiting process has just deleted the file
        return age_s <= self.timeout_s + LONGEST_WAIT_S

    def _is_built(self, collection_id: str) -> bool:
        return self._owns(collection_id) and self._locate_space(collection_id).is_file()

    def _locate_space(self, collection_id: str) -> Path:
        return self._root / collection_id / "space.json"
