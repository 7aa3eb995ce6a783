"""Lock files that allow only one writer at a time on one machine."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

from filelock import FileLock, Timeout

from rag_pipeline.core.errors import StoreLockedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rag_pipeline.core.settings import Settings

_POLL_S: Final = 0.05  # as often as filelock

_INGEST_ADVICE: Final = (
    "Wait until that process, probably an ingest, ends, or raise INGEST_LOCK_TIMEOUT_S"
)


@contextmanager
def hold_lock(path: Path, timeout_s: float, advice: str = _INGEST_ADVICE) -> Iterator[None]:
    """Hold a lock file for the duration of a `with` block.

    The operating system releases the lock if the process dies.

    Args:
        path: Lock file. Its folder is created if it is missing.
        timeout_s: Longest time in seconds to wait for another process that holds the lock.
        advice: End of the error message: what the user should do if the lock is not free.

    Raises:
        StoreLockedError: Another process held the lock for all of `timeout_s`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path, timeout=timeout_s)
    try:
        lock.acquire()
    except Timeout as error:
        raise _describe_held(path, timeout_s, advice) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def hold_buckets(
    whole: Path, folder: Path, buckets: Sequence[int], timeout_s: float
) -> Iterator[None]:
    """Hold the lock files of some buckets, and share the lock file of the whole book.

    Workers with other buckets can do the same at the same time. A process that holds `whole` with
    `hold_lock` excludes all of them.

    Args:
        whole: Lock file of the whole book.
        folder: Folder with a lock file for each bucket.
        buckets: Numbers of the buckets.
        timeout_s: Longest time in seconds to wait for each lock.

    Raises:
        StoreLockedError: Another process held one of the locks for all of `timeout_s`.
    """
    with ExitStack() as held:
        held.enter_context(_share_lock(whole, timeout_s))
        for bucket in sorted(buckets):  # always in the same order, so that no two workers block
            held.enter_context(hold_lock(folder / f"{bucket:03}.lock", timeout_s))
        yield


@contextmanager
def _share_lock(path: Path, timeout_s: float) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    raise _describe_held(path, timeout_s, _INGEST_ADVICE) from error
                time.sleep(_POLL_S)
        yield
    finally:
        os.close(file)


def locate_cell_lock(settings: Settings, collection: str) -> Path:
    """Return the path of the lock file of one sweep cell.

    A sweep cell is one combination of settings that `rag-pipeline sweep` compares with others. The
    lock is held while the cell's collection is built and evaluated.

    Args:
        settings: Settings of the book.
        collection: Name of the cell's collection.
    """
    return settings.state_dir / "cells" / f"{collection}.lock"


def _describe_held(path: Path, timeout_s: float, advice: str) -> StoreLockedError:
    held = (
        f"has held the lock {path} for {timeout_s:g} s" if timeout_s else f"holds the lock {path}"
    )
    return StoreLockedError(f"another process {held}. {advice}")
