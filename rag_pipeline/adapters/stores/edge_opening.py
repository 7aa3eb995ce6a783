"""Opening of one build of an embedded collection: its lock, its shard, or a copy of its shard.

A build on a disk that this process cannot write is copied to a temporary folder, because the engine
writes to the files that it opens.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from filelock import FileLock, Timeout

from rag_pipeline.adapters.local_files import write_text_atomically
from rag_pipeline.adapters.stores.edge_store import check_space, load_shard
from rag_pipeline.core.errors import StoreDamagedError, StoreError, StoreLockedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


WAITING: Final = ".waiting-"
"""Prefix of the marker file of a process that waits until a build is closed."""

LONGEST_WAIT_S: Final = 0.25
"""Longest time between two attempts to open a build."""

_FIRST_WAIT_S: Final = 0.02
_NOT_WRITABLE: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_MORE_ROOM: Final = "Free disk space, or set TMPDIR to a folder with more space"


class OpenBuild(NamedTuple):
    """An open build.

    Attributes:
        shard: The open shard of the engine.
        release: Function that lets other processes open the build, or deletes the copy.
        copied_at_ns: Time of the last change of the files that were copied; None without a copy.
    """

    shard: Any
    release: Callable[[], None]
    copied_at_ns: int | None = None


def open_patiently(folder: Path, timeout_s: float, wait_s: float | None = None) -> OpenBuild:
    """Open a build as `open_build` does, and wait while another process has it open.

    Args:
        folder: Folder of the build.
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
                    return open_build(folder)
            except StoreLockedError as error:
                if time.monotonic() + pause_s > deadline:
                    raise _describe_wait(folder.parent, timeout_s) from error
            with suppress(OSError):  # a disk that this process cannot write
                mark.touch()  # asks a reading process to close the store between two queries
                stack.callback(mark.unlink, missing_ok=True)
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_WAIT_S)


def open_build(folder: Path) -> OpenBuild:
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
        return _open_copy(folder)
    try:
        return OpenBuild(load_shard(folder / "shard"), lock.release)
    except BaseException:
        lock.release()
        raise


def lock_build(folder: Path) -> FileLock:
    """Lock a build and return the lock.

    Raises:
        StoreLockedError: Another process has the build open. This function does not wait.
        OSError: The lock file cannot be written.
    """
    # Any thread may close the store and release the lock. The system does it after a crash.
    lock = FileLock(folder / "lock", thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise _describe_lock(lock.lock_file) from error
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


def _open_copy(folder: Path) -> OpenBuild:
    copy = TemporaryDirectory(prefix="rag-pipeline-", ignore_cleanup_errors=True)
    shard = Path(copy.name, "shard")
    try:
        with _lock_for_reading(folder / "lock"):
            sizes = [_measure(file) for file in _list_files(folder)]
            check_space(Path(copy.name), sum(sizes), _MORE_ROOM)
            copied_at_ns = find_last_change(folder)
            shutil.copytree(folder / "shard", shard, copy_function=_copy_without_holes)
        shard.chmod(0o700)
        return OpenBuild(load_shard(shard, _MORE_ROOM), copy.cleanup, copied_at_ns)
    except BaseException:
        copy.cleanup()
        raise


@contextmanager
def _lock_for_reading(path: Path) -> Iterator[None]:
    """Hold a lock file that cannot be written, so that a process that can write it waits.

    Nothing is locked if the file is missing, or on Windows.
    """
    if sys.platform == "win32" or not path.exists():
        yield
        return
    import fcntl  # noqa: PLC0415  # Windows has no such module

    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise _describe_lock(path) from error
        yield


def _describe_lock(path: str | Path) -> StoreLockedError:
    return StoreLockedError(f"another process holds {path}. Wait until that process ends")


def _describe_wait(root: Path, timeout_s: float) -> StoreLockedError:
    store = f"the embedded store in {root}"
    state = f"had {store} open for {timeout_s:g} s" if timeout_s else f"{store} open"
    return StoreLockedError(
        f"another process has {state}. Wait until that ingest or query ends, raise "
        "STORE_LOCK_TIMEOUT_S, or set QDRANT_URL to a server that processes can share"
    )


def _list_files(folder: Path) -> list[Path]:
    return [file for file in (folder / "shard").rglob("*") if file.is_file()]


def _measure(file: Path) -> int:
    """Return the bytes that a file takes on the disk; holes take none."""
    state = file.stat()
    return getattr(state, "st_blocks", -(-state.st_size // 512)) * 512


def _copy_without_holes(source: str, target: str) -> None:
    """Copy a file; its holes stay holes, because the engine reserves far more than it uses."""
    if not hasattr(os, "SEEK_DATA"):
        shutil.copyfile(source, target)
        return
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


def read_in_use(root: Path) -> dict[str, str | None]:
    """Return the ids `current` and `previous`; None for a build that does not exist.

    Args:
        root: Folder of the collection.

    Raises:
        StoreDamagedError: The file is damaged.
        StoreError: The file cannot be read.
    """
    path = root / IN_USE
    try:
        with describe_file_errors(root):
            if not path.exists():
                return {"current": None, "previous": None}
            stored = json.loads(path.read_text("utf-8"))
        in_use = {"current": stored["current"], "previous": stored["previous"]}
    except (ValueError, KeyError, TypeError) as error:
        raise StoreDamagedError(f"{path} cannot be read") from error
    if not all(entry is None or isinstance(entry, str) for entry in in_use.values()):
        raise StoreDamagedError(f"{path} cannot be read")
    return in_use


def write_in_use(root: Path, current: str, previous: str | None) -> None:
    """Replace the ids in one step."""
    text = json.dumps({"current": current, "previous": previous}, indent=1) + "\n"
    with describe_file_errors(root):
        write_text_atomically(root / IN_USE, text)
