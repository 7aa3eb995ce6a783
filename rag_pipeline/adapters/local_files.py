"""Files on this machine: atomic writes, deletion, lock files, and damaged files set aside."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import tempfile
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import StoreLockedError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MODE: Final = 0o644  # `mkstemp` creates private files, which other users cannot read
_PARTIAL: Final = ".partial"  # suffix of a file that is still being written
_LONGEST_WRITE_S: Final = 3600.0  # an older partial file is not being written any more
_POLL_S: Final = 0.05
_INGEST_ADVICE: Final = (
    "Wait until that process, probably an ingest, ends, or raise INGEST_LOCK_TIMEOUT_S"
)
_SQLITE_PARTS: Final = ("", "-wal", "-shm", "-journal")


def write_bytes_atomically(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees either the complete old content or the complete new one.

    The file is written under a temporary name, flushed to the disk and then renamed.

    Args:
        path: File to write. Its folder is created if it is missing.
        data: Complete content of the file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(_PARTIAL, f".{path.name}.", path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(_MODE)
        Path(temporary).replace(path)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = str(path)  # a full disk is reported without the name of a file
        raise


def write_text_atomically(path: Path, text: str) -> None:
    """Write a text as a UTF-8 file with `write_bytes_atomically`."""
    write_bytes_atomically(path, text.encode("utf-8"))


def remove_partial_files(root: Path) -> None:
    """Delete the partial files that killed writes left in a folder and below it.

    A partial file of the last hour stays, because its write may still be running.
    """
    for folder, _, names in os.walk(root):
        for name in names:
            if name.startswith(".") and name.endswith(_PARTIAL):
                path = Path(folder, name)
                with suppress(FileNotFoundError):  # the write has just finished
                    if path.stat().st_mtime < time.time() - _LONGEST_WRITE_S:
                        path.unlink()


@contextmanager
def hold_lock(
    path: Path, timeout_s: float, advice: str = _INGEST_ADVICE, *, shared: bool = False
) -> Iterator[None]:
    """Hold a lock file for the duration of a `with` block.

    The operating system releases the lock if the process dies.

    Args:
        path: Lock file. Its folder is created if it is missing.
        timeout_s: Longest time in seconds to wait for another process that holds the lock.
        advice: End of the error message: what the user should do if the lock is not free.
        shared: Let other processes hold the lock at the same time, if they share it too.

    Raises:
        StoreLockedError: Another process held the lock for all of `timeout_s`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + timeout_s
    while (file := _try_lock(path, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)) is None:
        if time.monotonic() >= deadline:
            waited = f"has held the lock {path} for {timeout_s:g} s"
            held = waited if timeout_s else f"holds the lock {path}"
            raise StoreLockedError(f"another process {held}. {advice}")
        time.sleep(_POLL_S)
    try:
        yield
    finally:
        os.close(file)


def _try_lock(path: Path, kind: int) -> int | None:
    """Return the descriptor of a locked file; None if another process holds the lock."""
    access = os.O_RDONLY if kind == fcntl.LOCK_SH else os.O_RDWR  # a file that can only be read
    file = os.open(path, access | os.O_CREAT, _MODE)
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
        if path.stat().st_ino == os.fstat(file).st_ino:
            return file
    except (BlockingIOError, FileNotFoundError):
        pass  # held by another process, or deleted by the one that held it
    os.close(file)
    return None


def is_damage(error: sqlite3.Error) -> bool:
    """Return True if an error of SQLite means that the file is damaged or lacks a table."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest of the code gives details
    is_incomplete = str(error).startswith("no such table")
    return is_incomplete or code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def move_aside(path: Path) -> Path:
    """Rename a damaged SQLite file and its companion files, and return the new path.

    The new name ends with `.damaged-` and the time in UTC. Files that another process has renamed
    in the meantime are skipped.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    for part in _SQLITE_PARTS:
        with suppress(FileNotFoundError):
            path.with_name(path.name + part).rename(_name_aside(path, stamp + part))
    return _name_aside(path, stamp)


def _name_aside(path: Path, ending: str) -> Path:
    return path.with_name(f"{path.name}.damaged-{ending}")
