"""The ledger, a record of which documents are indexed, as one small JSON file per document."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Final, TypeVar

from rag_pipeline.adapters.state.damage import warn_once
from rag_pipeline.adapters.state.files import write_text_atomically
from rag_pipeline.core.errors import StoreError
from rag_pipeline.core.ids import make_file_key
from rag_pipeline.core.models import MarkdownFormat, SiteSettings
from rag_pipeline.core.protocols.state import LedgerEntry, LedgerFailure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from upath import UPath

    from rag_pipeline.core.ids import DocId

_SITE_FILE: Final = "site.json"

_Record = TypeVar("_Record", LedgerEntry, LedgerFailure)


class FileLedger:
    """A ledger (the record of which documents are indexed) in a folder or on an object store.

    The entry of a document is in `indexed/<file key>.json`, the record of its last failure in
    `failed/<file key>.json`. The file key is a hash of the document's id. Each file contains the
    id itself. The site settings of all links are in `site.json`.

    Args:
        root: Folder of the ledger. Each build (version) of a collection has a folder of its own, so
            that a rollback to the previous build also brings back that build's ledger.
    """

    def __init__(self, root: Path | UPath) -> None:
        self._root = root

    def entries(self) -> dict[DocId, LedgerEntry]:
        """Return the ledger entries of all indexed documents, by document id.

        A damaged entry counts as missing, with a warning, so its document is indexed again.

        Raises:
            StoreError: The permissions or the disk prevent reading a file of the ledger.
        """
        return {entry.doc_id: entry for entry in self._read_all("indexed", LedgerEntry)}

    def failures(self) -> dict[DocId, LedgerFailure]:
        """Return the failure records of all documents whose last attempt failed, by document id.

        A damaged record counts as missing, with a warning.

        Raises:
            StoreError: The permissions or the disk prevent reading a file of the ledger.
        """
        return {failure.doc_id: failure for failure in self._read_all("failed", LedgerFailure)}

    def record(self, entry: LedgerEntry) -> None:
        """Write the ledger entry of an indexed document, then delete its failure record."""
        self._write("indexed", entry.doc_id, entry)
        self._path("failed", entry.doc_id).unlink(missing_ok=True)

    def record_begun(self, entry: LedgerEntry) -> None:
        """Write a provisional ledger entry for a document, before its points are changed.

        The entry must have an empty `sha256`, so that the document does not count as indexed until
        `record` is called. A failure record of the document stays.
        """
        self._write("indexed", entry.doc_id, entry)

    def record_failure(self, failure: LedgerFailure) -> None:
        """Write the failure record of a document; its ledger entry stays unchanged."""
        self._write("failed", failure.doc_id, failure)

    def forget(self, doc_id: DocId) -> None:
        """Delete the document's ledger entry and its failure record, if they exist."""
        self._path("indexed", doc_id).unlink(missing_ok=True)
        self._path("failed", doc_id).unlink(missing_ok=True)

    def discard_damaged(self) -> None:
        """Delete the damaged files of the ledger, which no document can replace any more."""
        damaged = [path for path in self._list("indexed") if _read(path, LedgerEntry) is None]
        damaged += [path for path in self._list("failed") if _read(path, LedgerFailure) is None]
        for path in damaged:
            path.unlink(missing_ok=True)

    def record_site(self, site: SiteSettings) -> None:
        """Write the site settings that the links of all indexed documents were built with."""
        text = json.dumps(dataclasses.asdict(site), indent=1) + "\n"
        write_text_atomically(self._root / _SITE_FILE, text)

    def read_site(self) -> SiteSettings | None:
        """Return the recorded site settings; None if they are missing or cannot be read."""
        try:
            stored = json.loads((self._root / _SITE_FILE).read_text("utf-8"))
            stored["markdown_format"] = MarkdownFormat(stored["markdown_format"])
            return SiteSettings(**stored)
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def _path(self, kind: str, doc_id: DocId) -> Path | UPath:
        return self._root / kind / f"{make_file_key(doc_id)}.json"

    def _write(self, kind: str, doc_id: DocId, record: LedgerEntry | LedgerFailure) -> None:
        text = json.dumps(dataclasses.asdict(record), indent=1) + "\n"
        write_text_atomically(self._path(kind, doc_id), text)

    def _list(self, kind: str) -> list[Path | UPath]:
        folder = self._root / kind
        return sorted(folder.glob("*.json"), key=str) if folder.is_dir() else []

    def _read_all(self, kind: str, record_class: type[_Record]) -> Iterator[_Record]:
        for path in self._list(kind):
            try:
                record = _read(path, record_class)
            except FileNotFoundError:
                continue  # another run deleted the file after the folder was listed
            except OSError as error:
                message = f"ledger file {path} cannot be read: {error.strerror or error}"
                raise StoreError(f"{message}. Check its permissions and the disk") from error
            if record is not None:
                yield record
                continue
            warn_once(
                f"the ledger file {path} is damaged and counts as missing. The next `rag-pipeline "
                "ingest` indexes its document again; `rag-pipeline audit --repair` also removes "
                "what is left of a deleted document"
            )


def _read(path: Path | UPath, record_class: type[_Record]) -> _Record | None:
    """Return the record in a file; None if it is damaged or belongs to a file of another name.

    Raises:
        OSError: The file cannot be read.
    """
    try:
        stored = json.loads(path.read_bytes())
        record = record_class(**stored)
    except (ValueError, TypeError):
        return None
    for field in dataclasses.fields(record):
        if type(getattr(record, field.name)) is not (int if field.type == "int" else str):
            return None
    return record if path.stem == make_file_key(record.doc_id) else None
