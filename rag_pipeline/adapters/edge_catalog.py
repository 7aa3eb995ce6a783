"""The builds of an embedded collection on disk, and which one is in use.

<root>/<collection id>/space.json   what it was built with
<root>/<collection id>/shard/       Qdrant Edge's files
<root>/in-use.json                  {"current": id, "previous": id or null}, replaced in one
step
"""

from __future__ import annotations

import json
import secrets
import shutil
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rag_pipeline.adapters.edge_store import EdgeStore, create_shard, load_shard
from rag_pipeline.adapters.files import write_text_atomically
from rag_pipeline.core.errors import (
    CollectionMissingError,
    SpaceMismatchError,
    StoreError,
    StoreLockedError,
)
from rag_pipeline.core.models import EmbeddingModel, EmbeddingSpace

if TYPE_CHECKING:
    from pathlib import Path

_FIRST_WAIT_S = 0.02
_LONGEST_WAIT_S = 0.25


class EdgeCatalog:
    """A `CollectionCatalog` of folders below one root.

    Args:
        root: Folder of this collection; made on first use.
        collection: Name for messages and new ids.
        lock_timeout_s: How long to wait for another process that holds the store.
    """

    def __init__(self, root: Path, collection: str, lock_timeout_s: float) -> None:
        self._root = root
        self._collection = collection
        self._lock_timeout_s = lock_timeout_s

    def current_id(self) -> str | None:
        """Id of the collection in use, read from one small file."""
        current = self._read_in_use()["current"]
        return current if current and (self._root / current / "space.json").is_file() else None

    def open_current(self, space: EmbeddingSpace | None = None) -> EdgeStore:
        """Open the collection in use; see `CollectionCatalog.open_current`."""
        collection_id = self.current_id()
        if collection_id is None:
            raise CollectionMissingError(self._collection, str(self._root))
        stored = read_space((self._root / collection_id / "space.json").read_text("utf-8"))
        if space is not None and stored != space:
            raise SpaceMismatchError(self._collection, str(stored), str(space))
        return EdgeStore(self._load_patiently(collection_id), stored, collection_id)

    def create(self, space: EmbeddingSpace) -> EdgeStore:
        """Make an empty collection beside the one in use."""
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        collection_id = f"{self._collection}-{stamp}-{secrets.token_hex(3)}"
        shard = create_shard(self._root / collection_id / "shard", space.model.dim)
        write_text_atomically(self._root / collection_id / "space.json", write_space(space))
        return EdgeStore(shard, space, collection_id)

    def switch_to(self, collection_id: str) -> None:
        """Put a collection in use and delete all but it and the one before."""
        before = self.current_id()
        keep = {collection_id, before}
        self._write_in_use(collection_id, before)
        for folder in self._root.iterdir():
            if folder.is_dir() and folder.name not in keep:
                shutil.rmtree(folder, ignore_errors=True)

    def roll_back(self) -> str:
        """Swap the collection in use with the one before."""
        in_use = self._read_in_use()
        previous = in_use["previous"]
        if previous is None or not (self._root / previous / "space.json").is_file():
            raise CollectionMissingError(f"{self._collection} (the one before)", str(self._root))
        self._write_in_use(previous, in_use["current"])
        return previous

    def discard(self, collection_id: str) -> None:
        """Delete a collection's folder."""
        if collection_id != self.current_id():
            shutil.rmtree(self._root / collection_id, ignore_errors=True)

    def _load_patiently(self, collection_id: str) -> object:
        deadline = time.monotonic() + self._lock_timeout_s
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                return load_shard(self._root / collection_id / "shard")
            except StoreLockedError as error:
                if time.monotonic() + wait_s > deadline:
                    message = (
                        f"the embedded store in {self._root} was held by another process for "
                        f"{self._lock_timeout_s:g} s. Wait for that ingest or query to end, raise "
                        "STORE_LOCK_TIMEOUT_S, or set QDRANT_URL to share one server"
                    )
                    raise StoreLockedError(message) from error
            time.sleep(wait_s)
            wait_s = min(wait_s * 2, _LONGEST_WAIT_S)

    def _read_in_use(self) -> dict[str, str | None]:
        path = self._root / "in-use.json"
        try:
            stored = json.loads(path.read_text("utf-8"))
            return {"current": stored["current"], "previous": stored["previous"]}
        except FileNotFoundError:
            return {"current": None, "previous": None}
        except (ValueError, KeyError, TypeError) as error:
            message = f"{path} is damaged. Delete it and run `rag-pipeline ingest --rebuild`"
            raise StoreError(message) from error

    def _write_in_use(self, current: str, previous: str | None) -> None:
        text = json.dumps({"current": current, "previous": previous}, indent=1) + "\n"
        write_text_atomically(self._root / "in-use.json", text)


def write_space(space: EmbeddingSpace) -> str:
    """Serialize a space as JSON."""
    model = space.model
    return json.dumps(
        {
            "provider": model.provider,
            "model": model.model,
            "dim": model.dim,
            "max_input_tokens": model.max_input_tokens,
            "window_tokens": model.window_tokens,
            "format_version": space.format_version,
        },
        indent=1,
    )


def read_space(text: str) -> EmbeddingSpace:
    """Read what `write_space` wrote.

    Raises:
        StoreError: It is damaged.
    """
    try:
        stored = json.loads(text)
        format_version = int(stored.pop("format_version"))
        return EmbeddingSpace(EmbeddingModel(**stored), format_version)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = (
            "what the collection was built with cannot be read. Run `rag-pipeline ingest --rebuild`"
        )
        raise StoreError(message) from error
