"""The file that names the current and the previous build of an embedded collection."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from rag_pipeline.adapters.local_files import write_text_atomically
from rag_pipeline.adapters.stores.edge_opening import describe_file_errors
from rag_pipeline.core.errors import StoreDamagedError

if TYPE_CHECKING:
    from pathlib import Path

IN_USE: Final = "in-use.json"
"""Name of the file in the folder of the collection."""


def read_in_use(root: Path) -> dict[str, str | None]:
    """Return the ids `current` and `previous`; None for a build that does not exist.

    Args:
        root: Folder of the collection.

    Raises:
        StoreDamagedError: The file is damaged.
        StoreError: The file cannot be read.
    """
    path = root / IN_USE
    try:
        with describe_file_errors(root):
            if not path.exists():
                return {"current": None, "previous": None}
            stored = json.loads(path.read_text("utf-8"))
        in_use = {"current": stored["current"], "previous": stored["previous"]}
    except (ValueError, KeyError, TypeError) as error:
        raise StoreDamagedError(f"{path} cannot be read") from error
    if not all(entry is None or isinstance(entry, str) for entry in in_use.values()):
        raise StoreDamagedError(f"{path} cannot be read")
    return in_use


def write_in_use(root: Path, current: str, previous: str | None) -> None:
    """Replace the ids in one step."""
    text = json.dumps({"current": current, "previous": previous}, indent=1) + "\n"
    with describe_file_errors(root):
        write_text_atomically(root / IN_USE, text)
