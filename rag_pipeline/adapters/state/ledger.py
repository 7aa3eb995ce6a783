"""The ledger as one small JSON file a document, on a local folder or any object store that UPath
reaches.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, TypeVar

from rag_pipeline.adapters.state.files import write_text_atomically
from rag_pipeline.core.errors import StoreError
from rag_pipeline.core.ids import make_file_key
from rag_pipeline.core.protocols.state import LedgerEntry, LedgerFailure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from upath import UPath

    from rag_pipeline.core.ids import DocId

_Record = TypeVar("_Record", LedgerEntry, LedgerFailure)


class FileLedger:
    """A `Ledger` of files: `indexed/<file key>.json` and `failed/<file key>.json`.

    Each names its document.

    Args:
        root: Folder of this ledger; there is one for each collection id, so that a rollback brings
            back its own.
    """

    def __init__(self, root: Path | UPath) -> None:
        self._root = root

    def entries(self) -> dict[DocId, LedgerEntry]:
        """All indexed documents."""
        return {entry.doc_id: entry for entry in self._read_all("indexed", LedgerEntry)}

    def failures(self) -> dict[DocId, LedgerFailure]:
        """All documents whose last attempt failed."""
        return {failure.doc_id: failure for failure in self._read_all("failed", LedgerFailure)}

    def record(self, entry: LedgerEntry) -> None:
        """Write an entry, then clear the document's failure."""
        self._write("indexed", entry.doc_id, entry)
        self._path("failed", entry.doc_id).unlink(missing_ok=True)

    def record_begun(self, entry: LedgerEntry) -> None:
        """Write an entry that matches no file; a failure stays."""
        self._write("indexed", entry.doc_id, entry)

    def record_failure(self, failure: LedgerFailure) -> None:
        """Write a failure beside the entry."""
        self._write("failed", failure.doc_id, failure)

    def forget(self, doc_id: DocId) -> None:
        """Remove entry and failure."""
        self._path("indexed", doc_id).unlink(missing_ok=True)
        self._path("failed", doc_id).unlink(missing_ok=True)

    def _path(self, kind: str, doc_id: DocId) -> Path | UPath:
        return self._root / kind / f"{make_file_key(doc_id)}.json"

    def _write(self, kind: str, doc_id: DocId, record: LedgerEntry | LedgerFailure) -> None:
        text = json.dumps(dataclasses.asdict(record), indent=1) + "\n"
        write_text_atomically(self._path(kind, doc_id), text)

    def _read_all(self, kind: str, record_class: type[_Record]) -> Iterator[_Record]:
        folder = self._root / kind
        if not folder.is_dir():
            return
        paths: list[Path | UPath] = sorted(folder.glob("*.json"), key=str)
        for path in paths:
            try:
                record = record_class(**json.loads(path.read_text("utf-8")))
            except FileNotFoundError:
                continue  # forgotten by a run since the folder was listed
            except (ValueError, TypeError, OSError) as error:
                mend = "Delete it; its document is indexed again"
                message = f"ledger file {path} cannot be read: {error}. {mend}"
                raise StoreError(message) from error
            yield record
