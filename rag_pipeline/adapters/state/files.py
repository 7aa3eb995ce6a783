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
from rag_pipeline.core.errors import ConfigurationError, MissingDependencyError

if TYPE_CHECKING:
    from upath import UPath

    from rag_pipeline.core.settings import Settings

_LOCAL = frozenset({"", "file", "local"})  # protocols of paths on this machine
_KEEP_NO_LISTINGS = _LOCAL | {"sftp", "ssh"}  # and do not know the option that turns it off
_MODE = 0o644  # `mkstemp` creates private files, which other users cannot read
_PARTIAL = ".partial"  # suffix of a file that is still being written
_LONGEST_WRITE_S = 3600.0  # an older partial file is not being written any more


def open_root(url: str) -> UPath:
    """Return the folder or object store at the URL of the setting STATE_URL.

    A URL of a local folder becomes a local path, so that files in it are written atomically. An
    object store is opened without a cache of its listings. Such a cache hides what other processes
    write, and reading an object that another process wrote again fails with it.

    Raises:
        ConfigurationError: The URL is not valid.
        MissingDependencyError: The package for its scheme, such as s3fs, is not installed.
    """
    from upath import UPath  # noqa: PLC0415  # needed only if STATE_URL is set

    try:
        root = UPath(url)
        if root.protocol not in _KEEP_NO_LISTINGS:
            root = UPath(url, use_listings_cache=False)
        root.fs  # noqa: B018  # creates the file system, so that an error appears here
    except ImportError as error:
        from fsspec.registry import known_implementations  # type: ignore[import-untyped]  # noqa: PLC0415  # needed only here

        place = known_implementations.get(url.partition(":")[0], {}).get("class", "fsspec")
        raise MissingDependencyError(place.partition(".")[0]) from error
    except Exception as error:  # each file system raises its own errors
        problem = f"the URL cannot be opened ({error})"
        remedy = "Check the part before :// and the rest of the address"
        raise ConfigurationError("STATE_URL", problem, remedy) from error
    return UPath(root.path) if root.protocol in _LOCAL else root


def open_shared_state(settings: Settings) -> UPath | None:
    """Return the folder of the book's state at STATE_URL; None if the state is in DATA_DIR.

    Raises:
        ConfigurationError: STATE_URL is not valid, or STATE_NAME is missing.
        MissingDependencyError: The package for the URL's scheme, such as s3fs, is not installed.
    """
    if not settings.state_url:
        return None
    root = open_root(settings.state_url)
    return root / require_state_name(settings, "STATE_URL")


def require_state_name(settings: Settings, needed_with: str) -> str:
    """Return the name of the book's state, which is the same on all machines.

    Args:
        settings: Settings with the name.
        needed_with: Name of the setting that needs it, for the error message.

    Raises:
        ConfigurationError: STATE_NAME is not set.
    """
    if not settings.state_name:
        remedy = (
            "Choose a name for the book's state, and set it on each machine. The state that an "
            f"earlier version stored from this folder has the name {settings.state_dir.name}"
        )
        raise ConfigurationError("STATE_NAME", f"it is needed with {needed_with}", remedy)
    return settings.state_name


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
