"""Writing files so that a reader or a crash never sees half of one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from upath import UPath

_MODE = 0o644  # a temporary file is its owner's alone: a container's user could not read it


def write_bytes_atomically(path: Path, data: bytes) -> None:
    """Write a file beside its place, bring it to disk, and move it there in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(_MODE)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_text_atomically(path: Path | UPath, text: str) -> None:
    """Write UTF-8 text as `write_bytes_atomically` does; an object store writes whole anyway."""
    if isinstance(path, Path):
        write_bytes_atomically(path, text.encode("utf-8"))
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))
