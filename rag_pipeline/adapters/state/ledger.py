"""The ledger, a record of which documents are indexed, as one small JSON file per document."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Final, TypeVar

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

        Raises:
            StoreError: A file of the ledger cannot be read.
        """
        return {entry.doc_id: entry for entry in self._read_all("indexed", LedgerEntry)}

    def failures(self) -> dict[DocId, LedgerFailure]:
        """Return the failure records of all documents whose last attempt failed, by document id.

        Raises:
            StoreError: A file of the ledger cannot be read.
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

    def _read_all(self, kind: str, record_class: type[_Record]) -> Iterator[_Record]:
        folder = self._root / kind
        if not folder.is_dir():
            return
        paths: list[Path | UPath] = sorted(folder.glob("*.json"), key=str)
        for path in paths:
            try:
                record = record_class(**json.loads(path.read_text("utf-8")))
            except FileNotFoundError:
                continue  # another run deleted the file after the folder was listed
            except (ValueError, TypeError, OSError) as error:
                # A TypeError is about the arguments of the constructor, which a user does not know.
                is_other = isinstance(error, TypeError)
                problem = "it does not contain a ledger entry" if is_other else str(error)
                remedy = (
                    "Delete the file; the next `rag-pipeline ingest` indexes its document again"
                )
                message = f"ledger file {path} cannot be read: {problem}. {remedy}"
                raise StoreError(message) from error
            yield record
