"""The folders below DATA_DIR that contain the state of one docs folder each, and how to find them.

The database in each of these state folders records where the docs folder and DATA_DIR were at the
last ingestion. A moved DATA_DIR or docs folder is recognized by it, or by the indexed documents.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.ids import hash_place

DATABASE_NAME: Final = "state.sqlite"
"""Name of the database in a state folder."""

_PATTERN: Final = "*-????????"
_SAMPLE: Final = """
select doc_id, sha256 from documents where collection_id =
    (select collection_id from documents order by indexed_at desc limit 1)
order by doc_id limit 20
"""
_LISTED: Final = 5  # indexes that an error message names


@dataclass(frozen=True, slots=True)
class _Places:
    """The resolved paths of a docs folder and of the DATA_DIR that contains its state."""

    docs_dir: Path
    data_dir: Path

    @property
    def relative(self) -> str:
        return os.path.relpath(self.docs_dir, self.data_dir)


def find_state_dir(docs_dir: Path, data_dir: Path) -> Path:
    """Return the folder below DATA_DIR that stores the state of one docs folder only.

    It is the first of these that exists, or else the name for a new folder:

    1. The folder of a docs folder at the same path relative to DATA_DIR, so that both can be moved
       together. The name of the folder contains a hash of that path.
    2. The folder of a docs folder at the same absolute path, so that DATA_DIR can be moved.
    3. If the docs folder is missing: the only state folder in DATA_DIR.
    4. The folder with an index of at least half of the same documents, if its docs folder is not
       where it was, or DATA_DIR was moved.

    Raises:
        ConfigurationError: DATA_DIR, or a folder above it, is a file.
    """
    _check_folder(data_dir)
    wanted = _Places(docs_dir.resolve(), data_dir.resolve())
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", wanted.docs_dir.name) or "docs"
    own = wanted.data_dir / f"{name}-{hash_place(wanted.docs_dir, wanted.data_dir)}"
    if own.exists() and _is_same_place(_read_places(own), wanted):
        return own
    known = {path: _read_places(path) for path in _list_state_dirs(wanted.data_dir)}
    for path, places in known.items():
        if places is not None and _is_same_place(places, wanted):
            return path
    if not wanted.docs_dir.exists():
        return next(iter(known)) if len(known) == 1 else own
    for path, places in known.items():
        is_there = places and places.data_dir == wanted.data_dir and places.docs_dir.exists()
        if not is_there and _has_same_documents(path, wanted.docs_dir):
            return path
    if own.exists():  # another docs folder was there, whose index is used from another place now
        return (
            wanted.data_dir / f"{name}-{hash_place(wanted.docs_dir, Path(wanted.docs_dir.anchor))}"
        )
    return own


def describe_indexes(docs_dir: Path, data_dir: Path) -> str:
    """Return a sentence that says which indexes DATA_DIR contains, for an error message."""
    data_dir = data_dir.resolve()
    if not data_dir.is_dir():
        return f"DATA_DIR {data_dir} does not exist"
    found = {path: _read_places(path) for path in _list_state_dirs(data_dir)}
    found.pop(find_state_dir(docs_dir, data_dir), None)
    if not found:
        return f"DATA_DIR {data_dir} contains no other index"
    names = [str(places.docs_dir) if places else path.name for path, places in found.items()]
    shown = ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
    return (
        f"DATA_DIR {data_dir} contains indexes of these docs folders: {shown}. Set DOCS_DIR to use "
        "one of them"
    )


def _check_folder(data_dir: Path) -> None:
    path = data_dir.absolute()
    nearest = next(one for one in (path, *path.parents) if os.path.lexists(one))
    if not nearest.is_dir():
        problem = f"{nearest} is not a folder"
        remedy = "Set it to a folder; it is created if it is missing"
        raise ConfigurationError("DATA_DIR", problem, remedy)


def _list_state_dirs(data_dir: Path) -> list[Path]:
    return sorted(path for path in data_dir.glob(_PATTERN) if path.is_dir())


def _read_places(state_dir: Path) -> _Places | None:
    """Return the recorded places; None if there is no record, or if the database is damaged."""
    for docs_dir, data_dir in _read_rows(state_dir, "select docs_dir, data_dir from books"):
        return _Places(Path(docs_dir), Path(data_dir))
    return None


def _read_rows(state_dir: Path, query: str) -> list[tuple[str, str]]:
    """Return what a query finds in the database of a state folder; empty if it cannot be read."""
    path = state_dir / DATABASE_NAME
    if not path.is_file():
        return []
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            return database.execute(query).fetchall()
    except sqlite3.Error:
        return []


def _is_same_place(places: _Places | None, wanted: _Places) -> bool:
    """Return True if the paths are equal. A folder without a record is known by its name only."""
    return (
        places is None or places.relative == wanted.relative or places.docs_dir == wanted.docs_dir
    )


def _has_same_documents(state_dir: Path, docs_dir: Path) -> bool:
    """Return True if at least half of a sample of the indexed documents is in the same folders.

    The ids of other sources are paths below the folder of the site, which contains the docs folder.
    """
    sample = _read_rows(state_dir, _SAMPLE)
    folders = (docs_dir, docs_dir.parent)
    same = sum(
        sha256 in {_hash_file(folder / doc_id) for folder in folders} for doc_id, sha256 in sample
    )
    return bool(sample) and same * 2 >= len(sample)


def _hash_file(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError):
        return None
