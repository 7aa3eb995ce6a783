"""Reads, writes, deletes and listings of objects, with one request each.

The methods of UPath with the same purpose send up to three requests, because they ask first what is
at the path.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from upath import UPath


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


def delete_object(path: UPath) -> None:
    """Delete an object, if it exists."""
    with suppress(FileNotFoundError):
        path.fs.rm_file(path.path)


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


def compute_version(data: bytes) -> str:
    """Return the version that many storages give an object with this content."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _read_version(info: dict[str, object]) -> str:
    return str(info.get("ETag") or info.get("etag") or "").strip('"')
