"""Writing files so that a reader or a crash never sees half of one, and removing what a killed
write or a deleted build leaves behind.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rag_pipeline.core.errors import ConfigurationError

if TYPE_CHECKING:
    from upath import UPath

_MODE = 0o644  # a temporary file is its owner's alone: a container's user could not read it
_PARTIAL = ".partial"  # ends the name of a file that is being written
_LONGEST_WRITE_S = 3600.0


def open_root(url: str) -> UPath:
    """Open the place that STATE_URL names.

    A folder of this machine, however it is spelled, is returned as a `Path`, so that files in it
    are written atomically.

    Raises:
        ConfigurationError: The address cannot be used, or the package for its kind is missing.
    """
    from upath import UPath  # noqa: PLC0415  # loaded only when state is kept elsewhere

    try:
        root = UPath(url)
        root.fs  # noqa: B018  # creates the file system, and finds out here what is wrong
    except Exception as error:  # each file system has errors of its own
        problem = f"it cannot be opened ({error})"
        remedy = "Use such as s3://bucket/prefix, and install the package of its kind (s3fs)"
        raise ConfigurationError("STATE_URL", problem, remedy) from error
    return UPath(root.path) if root.protocol in {"file", "local"} else root


def write_bytes_atomically(path: Path | UPath, data: bytes, *, durable: bool = True) -> None:
    """Write a file beside its place and move it there in one step; an object store shows an object
    when it is whole.

    Args:
        path: Its folder is made where it is missing.
        data: The whole content.
        durable: Bring it to disk first; without, a power cut may leave it damaged.
    """
    if not isinstance(path, Path):
        _write_remote(path, data)
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
    """Write UTF-8 text as `write_bytes_atomically` does."""
    write_bytes_atomically(path, text.encode("utf-8"))


def _write_remote(path: UPath, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except FileNotFoundError:  # a file server, which has folders; asking first costs each write
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def list_names(folder: Path | UPath) -> list[str]:
    """Names in a local folder; none where it is missing, or on an object store."""
    if not isinstance(folder, Path) or not folder.is_dir():
        return []
    return os.listdir(folder)  # noqa: PTH208  # a path of each of 50,000 files takes a second


def remove_partial_files(root: Path) -> None:
    """Delete what killed writes left below a folder; a younger file may still be written.

    An object store needs none of this: it shows an object when it is whole.
    """
    for folder, _, names in os.walk(root):
        for name in names:
            if name.startswith(".") and name.endswith(_PARTIAL):
                with suppress(FileNotFoundError):  # its writer has moved it
                    remove_abandoned(Path(folder, name))


def remove_abandoned(path: Path | UPath) -> None:
    """Delete a file unless it was written in the last hour, by a process that may still be at it.

    Raises:
        OSError: It is not there, or cannot be deleted.
    """
    if path.stat().st_mtime < time.time() - _LONGEST_WRITE_S:
        path.unlink()


def remove_tree(path: Path | UPath) -> None:
    """Delete a folder and all below it; one that is not there is passed over."""
    if isinstance(path, Path):
        shutil.rmtree(path, ignore_errors=True)
    elif path.exists():
        path.rmdir(recursive=True)
