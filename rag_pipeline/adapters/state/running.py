"""How far the running ingestion of a book is, for other processes.

The file `ingesting.json` in the book's state folder is locked as long as an ingestion runs. The
operating system releases the lock if the process dies, so a file that a killed ingestion left
behind means nothing.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.protocols.state import IngestionProgress

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rag_pipeline.core.protocols.state import Announce

_NAME: Final = "ingesting.json"
_SIZE_BYTES: Final = 64  # one write of a fixed size, so that a reader never sees a part of it


@contextmanager
def announce_ingestion(state_dir: Path) -> Iterator[Announce]:
    """Yield a function that tells other processes how many documents are indexed.

    The caller must hold the ingestion lock of the book.
    """
    state_dir.mkdir(parents=True, exist_ok=True)
    file = os.open(state_dir / _NAME, os.O_RDWR | os.O_CREAT, 0o644)

    def announce(done: int, total: int) -> None:
        text = json.dumps({"done": done, "total": total})
        os.pwrite(file, text.ljust(_SIZE_BYTES).encode(), 0)

    try:
        os.ftruncate(file, 0)  # what an earlier ingestion wrote
        fcntl.flock(file, fcntl.LOCK_EX)
        yield announce
    finally:
        os.close(file)


def read_running_ingestion(state_dir: Path) -> IngestionProgress | None:
    """Return how far the running ingestion of a book is; None if no ingestion is running.

    The total is 0 as long as the ingestion has not yet counted the documents.
    """
    try:
        file = os.open(state_dir / _NAME, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.pread(file, _SIZE_BYTES, 0)
        return IngestionProgress(**json.loads(text)) if text else IngestionProgress(0, 0)
    else:
        return None
    finally:
        os.close(file)
