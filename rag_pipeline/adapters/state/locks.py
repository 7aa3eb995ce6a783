"""One writer at a time on one machine, by a lock file that is let go of when its process dies."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from rag_pipeline.core.errors import StoreLockedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def hold_lock(path: Path, timeout_s: float) -> Iterator[None]:
    """Hold a lock file for the time of a `with` block.

    Raises:
        StoreLockedError: Another process held it for all of `timeout_s`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path, timeout=timeout_s)
    try:
        lock.acquire()
    except Timeout as error:
        message = (
            f"another ingest has held {path} for {timeout_s:g} s. Wait for it to end, or raise "
            "INGEST_LOCK_TIMEOUT_S"
        )
        raise StoreLockedError(message) from error
    try:
        yield
    finally:
        lock.release()
