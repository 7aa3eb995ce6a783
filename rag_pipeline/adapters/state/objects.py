"""Reads, writes, deletes and listings of objects, with one request each.

The methods of UPath with the same purpose send up to three requests, because they ask first what is
at the path.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import StoreError

if TYPE_CHECKING:
    from upath import UPath

_COMPARING: Final = frozenset({"s3", "s3a"})  # protocols whose storage compares before a write
_REFUSED: Final = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "412", "409"})


def read_object(path: UPath, start: int = 0, end: int | None = None) -> bytes:
    """Return the bytes of an object from `start` to `end` (exclusive), by default all of them.

    Raises:
        FileNotFoundError: There is no such object.
    """
    data: bytes
    try:
        # Without a start, s3fs asks for the size first.
        data = path.fs.cat_file(path.path, start=start, end=end)
    except FileNotFoundError:
        raise
    except OSError:  # the range of an empty object is not valid
        data = path.fs.cat_file(path.path)[start:end]
    return data


def write_object(path: UPath, data: bytes) -> None:
    """Write an object, in place of an existing one. Its folder is created if it is missing."""
    try:
        path.fs.pipe_file(path.path, data)
    except FileNotFoundError:
        # The storage has real folders. Checking for the folder first would slow every write down.
        path.parent.mkdir(parents=True, exist_ok=True)
        path.fs.pipe_file(path.path, data)


def can_compare(path: UPath) -> bool:
    """Return True if `replace_object` works on the storage of a path."""
    return path.protocol in _COMPARING


def replace_object(path: UPath, data: bytes, version: str) -> str | None:
    """Write an object if the storage still has the version that the caller knows.

    Args:
        path: The object, on a storage for which `can_compare` is true.
        data: The new content.
        version: The version of the object that is replaced; empty if there must be no object.

    Returns:
        The new version; None if the storage has another version, so that nothing was written.
    """
    condition = {"IfMatch": f'"{version}"'} if version else {"IfNoneMatch": "*"}
    try:
        answer = path.fs.pipe_file(path.path, data, **condition)
    except OSError as error:
        answered = getattr(error.__cause__, "response", {}).get("Error", {}).get("Code")
        if answered in _REFUSED or isinstance(error, (FileExistsError, FileNotFoundError)):
            return None
        raise
    return str(answer["ETag"]).strip('"')


def delete_object(path: UPath) -> None:
    """Delete an object, if it exists.

    Raises:
        StoreError: The storage does not allow it.
    """
    try:
        path.fs.rm_file(path.path)
    except FileNotFoundError:
        return
    except PermissionError as error:
        message = f"the storage does not allow the deletion of {path}. Allow it, and run again"
        raise StoreError(message) from error


def list_objects(folder: UPath) -> dict[str, str]:
    """Return the version of each object in a folder by its name; empty if there is no folder.

    An object that was written again has another version. The version is empty if the storage tells
    none.
    """
    try:
        found = folder.fs.ls(folder.path, detail=True)
    except FileNotFoundError:
        return {}
    return {
        info["name"].rpartition("/")[2]: _read_version(info)
        for info in found
        if info["type"] == "file"
    }


def find_version(path: UPath) -> str:
    """Return the version of an object; empty if the storage tells none.

    Raises:
        FileNotFoundError: There is no such object.
    """
    return _read_version(path.fs.info(path.path))


def compute_version(data: bytes) -> str:
    """Return the version that many storages give an object with this content."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _read_version(info: dict[str, object]) -> str:
    return str(info.get("ETag") or info.get("etag") or "").strip('"')
