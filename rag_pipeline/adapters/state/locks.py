"""Lock files that allow only one writer at a time on one machine."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from filelock import FileLock, Timeout

from rag_pipeline.core.errors import StoreLockedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
        held = (
            f"has held the lock {path} for {timeout_s:g} s"
            if timeout_s
            else f"holds the lock {path}"
        )
        raise StoreLockedError(f"another process {held}. {advice}") from error
    try:
        yield
    finally:
        lock.release()
