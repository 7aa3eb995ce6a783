"""The folders below DATA_DIR that contain the state of one docs folder each, and how to find them.

Each of these state folders has a file that records where the docs folder and DATA_DIR were at the
last ingestion. A moved DATA_DIR or docs folder is recognized by it, or by the indexed documents.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.ids import hash_place

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORD: Final = "book.json"
"""Name of the file that records the place of the docs folder, and of DATA_DIR at that time."""

_PATTERN: Final = "*-????????"
_SAMPLE: Final = 20  # documents that are compared to recognize a book
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
        if _may_have_moved(places, wanted) and _has_same_documents(path, wanted.docs_dir):
            return path
    if own.exists():  # another docs folder was there, whose index is used from another place now
        return (
            wanted.data_dir / f"{name}-{hash_place(wanted.docs_dir, Path(wanted.docs_dir.anchor))}"
        )
    return own


def dump_places(docs_dir: Path, data_dir: Path) -> str:
    """Return the content of the file `RECORD`: the current places of a book and of DATA_DIR."""
    places = {"docs_dir": str(docs_dir.resolve()), "data_dir": str(data_dir.resolve())}
    return json.dumps(places, indent=1) + "\n"


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
    """Return the recorded places; None if there is no record, or if it is damaged."""
    try:
        record = json.loads((state_dir / RECORD).read_text("utf-8"))
        return _Places(Path(record["docs_dir"]), Path(record["data_dir"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_same_place(places: _Places | None, wanted: _Places) -> bool:
    """Return True if the paths are equal. A folder without a record is known by its name only."""
    return (
        places is None or places.relative == wanted.relative or places.docs_dir == wanted.docs_dir
    )


def _may_have_moved(places: _Places | None, wanted: _Places) -> bool:
    return places is None or places.data_dir != wanted.data_dir or not places.docs_dir.exists()


def _has_same_documents(state_dir: Path, docs_dir: Path) -> bool:
    """Return True if at least half of a sample of the indexed documents is in the same folders.

    The ids of other sources are paths below the folder of the site, which contains the docs folder.
    """
    sample = list(_sample_documents(state_dir))
    folders = (docs_dir, docs_dir.parent)
    same = sum(
        sha256 in {_hash_file(folder / doc_id) for folder in folders} for doc_id, sha256 in sample
    )
    return bool(sample) and same * 2 >= len(sample)


def _sample_documents(state_dir: Path) -> Iterator[tuple[str, str]]:
    """Yield the ids and content hashes of some documents that the newest ledger lists."""
    ledgers = sorted(state_dir.glob("ledger/*/indexed"), key=lambda path: path.stat().st_mtime)
    for path in sorted(ledgers[-1].glob("*.json"))[:_SAMPLE] if ledgers else ():
        try:
            entry = json.loads(path.read_text("utf-8"))
            yield str(entry["doc_id"]), str(entry["sha256"])
        except (OSError, ValueError, KeyError, TypeError):
            continue


def _hash_file(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError):
        return None
