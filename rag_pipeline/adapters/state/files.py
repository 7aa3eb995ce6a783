"""Atomic writes of files, and deletion of folders and of files that killed processes left."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rag_pipeline.adapters.state.objects import delete_object, read_object, write_object

if TYPE_CHECKING:
    from upath import UPath

_MODE = 0o644  # `mkstemp` creates private files, which other users cannot read
_PARTIAL = ".partial"  # suffix of a file that is still being written
_LONGEST_WRITE_S = 3600.0  # an older partial file is not being written any more


def write_bytes_atomically(path: Path | UPath, data: bytes, *, durable: bool = True) -> None:
    """Write a file so that a reader sees either the complete old content or the complete new one.

    A local file is written under a temporary name and then renamed. An object store shows only
    complete objects.

    Args:
        path: File to write. Its folder is created if it is missing.
        data: Complete content of the file.
        durable: Flush the data to disk before the rename. If False, a power failure may leave a
            damaged file.
    """
    if not isinstance(path, Path):
        write_object(path, data)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(_PARTIAL, f".{path.name}.", path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        Path(temporary).chmod(_MODE)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_text_atomically(path: Path | UPath, text: str) -> None:
    """Write a text as a UTF-8 file with `write_bytes_atomically`."""
    write_bytes_atomically(path, text.encode("utf-8"))


def read_file(path: Path | UPath) -> bytes:
    """Return the content of a file or an object.

    Raises:
        FileNotFoundError: There is no such file.
    """
    return path.read_bytes() if isinstance(path, Path) else read_object(path)


def remove_file(path: Path | UPath) -> None:
    """Delete a file or an object, if it exists."""
    if isinstance(path, Path):
        path.unlink(missing_ok=True)
    else:
        delete_object(path)


def list_names(folder: Path | UPath) -> list[str]:
    """Return the names in a local folder; empty if it is missing or on an object store."""
    if not isinstance(folder, Path) or not folder.is_dir():
        return []
    return os.listdir(folder)  # noqa: PTH208  # creating 50,000 Path objects takes a second


def remove_partial_files(root: Path) -> None:
    """Delete the partial files that killed writes left in a local folder and below it.

    A partial file of the last hour stays, because its write may still be running. An object store
    needs no such cleanup, because it shows only complete objects.
    """
    for folder, _, names in os.walk(root):
        for name in names:
            if name.startswith(".") and name.endswith(_PARTIAL):
                with suppress(FileNotFoundError):  # the write has just finished
                    remove_abandoned(Path(folder, name))


def remove_abandoned(path: Path | UPath) -> None:
    """Delete a file, unless it was written in the last hour.

    Another process may still be using a file that was written in the last hour.

    Raises:
        OSError: The file is missing or cannot be deleted.
    """
    if path.stat().st_mtime < time.time() - _LONGEST_WRITE_S:
        path.unlink()


def remove_tree(path: Path | UPath) -> None:
    """Delete a folder and everything in it, if it exists.

    On a local disk, files that cannot be deleted are skipped.
    """
    if isinstance(path, Path):
        shutil.rmtree(path, ignore_errors=True)
    elif path.exists():
        path.rmdir(recursive=True)
