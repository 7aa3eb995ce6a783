"""Handling of damaged state files: a warning to the user, and a copy that is kept aside."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_SQLITE_PARTS = ("", "-wal", "-shm", "-journal")
_logger = logging.getLogger("rag_pipeline.state")


@cache
def warn_once(message: str) -> None:
    """Log a warning about the state, unless this process has already logged the same message.

    An application that configures no logging shows the message on standard error.
    """
    _logger.warning("rag-pipeline: warning: %s", message)


def is_damage(error: sqlite3.Error) -> bool:
    """Return True if an error of SQLite means that the content of the file is damaged."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest of the code gives details
    return code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


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
