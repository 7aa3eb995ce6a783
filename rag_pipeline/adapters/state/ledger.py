"""The ledger, a record of which documents are indexed, as one small JSON file per document."""

from __future__ import annotations

import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from rag_pipeline.adapters.state.damage import warn_once
from rag_pipeline.adapters.state.files import (
    read_file,
    remove_file,
    write_bytes_atomically,
    write_text_atomically,
)
from rag_pipeline.adapters.state.objects import compute_version, list_objects, read_object
from rag_pipeline.core.errors import StoreError
from rag_pipeline.core.ids import make_file_key
from rag_pipeline.core.models import MarkdownFormat, SiteSettings
from rag_pipeline.core.protocols.state import LedgerEntry, LedgerFailure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upath import UPath

    from rag_pipeline.core.ids import DocId

_SITE_FILE: Final = "site.json"
_REQUESTS_AT_A_TIME: Final = 16

_Record = TypeVar("_Record", LedgerEntry, LedgerFailure)


class FileLedger:
    """A ledger (the record of which documents are indexed) in a folder or on an object store.

    The entry of a document is in `indexed/<file key>.json`, the record of its last failure in
    `failed/<file key>.json`. The file key is a hash of the document's id. Each file contains the
    id itself. The site settings of all links are in `site.json`.

    On an object store, an object is read again only if its version (ETag) has changed since this
    instance read or wrote it.

    Args:
        root: Folder of the ledger. Each build (version) of a collection has a folder of its own, so
            that a rollback to the previous build also brings back that build's ledger.
    """

    def __init__(self, root: Path | UPath) -> None:
        self._root = root
        self._known: dict[str, tuple[str, bytes]] = {}  # version and content, by path

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
        remove_file(self._path("failed", entry.doc_id))

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
        remove_file(self._path("indexed", doc_id))
        remove_file(self._path("failed", doc_id))

    def discard_damaged(self) -> None:
        """Delete the damaged files of the ledger, which no document can replace any more."""
        kinds: tuple[tuple[str, type], ...] = (("indexed", LedgerEntry), ("failed", LedgerFailure))
        for kind, record_class in kinds:
            for path, data in self._read_files(kind):
                if _parse(path, data, record_class) is None:
                    remove_file(path)

    def record_site(self, site: SiteSettings) -> None:
        """Write the site settings that the links of all indexed documents were built with."""
        text = json.dumps(dataclasses.asdict(site), indent=1) + "\n"
        write_text_atomically(self._root / _SITE_FILE, text)

    def read_site(self) -> SiteSettings | None:
        """Return the recorded site settings; None if they are missing or cannot be read."""
        try:
            stored = json.loads(read_file(self._root / _SITE_FILE))
            stored["markdown_format"] = MarkdownFormat(stored["markdown_format"])
            return SiteSettings(**stored)
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def _path(self, kind: str, doc_id: DocId) -> Path | UPath:
        return self._root / kind / f"{make_file_key(doc_id)}.json"

    def _write(self, kind: str, doc_id: DocId, record: LedgerEntry | LedgerFailure) -> None:
        data = (json.dumps(dataclasses.asdict(record), indent=1) + "\n").encode()
        path = self._path(kind, doc_id)
        write_bytes_atomically(path, data)
        if not isinstance(path, Path):
            self._known[path.path] = (compute_version(data), data)

    def _read_files(self, kind: str) -> Iterator[tuple[Path | UPath, bytes]]:
        """Yield the path and the content of each file of a kind, in the order of their names.

        Files that another run deletes after the folder was listed are left out.
        """
        folder = self._root / kind
        if not isinstance(folder, Path):
            yield from self._read_objects(folder)
            return
        for path in sorted(folder.glob("*.json"), key=str) if folder.is_dir() else []:
            with suppress(FileNotFoundError), _readable(path):
                yield path, path.read_bytes()

    def _read_objects(self, folder: UPath) -> Iterator[tuple[UPath, bytes]]:
        with _readable(folder):
            listed = list_objects(folder)
        places = {folder / name: listed[name] for name in sorted(listed) if name.endswith(".json")}
        changed = [
            path
            for path, version in places.items()
            if not version or self._known.get(path.path, ("",))[0] != version
        ]
        with ThreadPoolExecutor(_REQUESTS_AT_A_TIME) as workers:
            for path, data in zip(changed, workers.map(_read_object, changed), strict=True):
                if data is not None:
                    self._known[path.path] = (places[path], data)
        for path, version in places.items():
            known = self._known.get(path.path)
            if known is not None and (not version or known[0] == version):
                yield path, known[1]

    def _read_all(self, kind: str, record_class: type[_Record]) -> Iterator[_Record]:
        for path, data in self._read_files(kind):
            record = _parse(path, data, record_class)
            if record is not None:
                yield record
                continue
            warn_once(
                f"the ledger file {path} is damaged and counts as missing. The next `rag-pipeline "
                "ingest` indexes its document again; `rag-pipeline audit --repair` also removes "
                "what is left of a deleted document"
            )


@contextmanager
def _readable(path: Path | UPath) -> Iterator[None]:
    """Raise a StoreError in place of an OSError in the block, unless a file is missing."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        message = f"ledger file {path} cannot be read: {error.strerror or error}"
        raise StoreError(f"{message}. Check its permissions and the disk") from error


def _read_object(path: UPath) -> bytes | None:
    """Return the content of an object; None if it was deleted in the meantime."""
    with suppress(FileNotFoundError), _readable(path):
        return read_object(path)
    return None


def _parse(path: Path | UPath, data: bytes, record_class: type[_Record]) -> _Record | None:
    """Return the record in a file; None if it is damaged or belongs to a file of another name."""
    try:
        record = record_class(**json.loads(data))
    except (ValueError, TypeError):
        return None
    for field in dataclasses.fields(record):
        if type(getattr(record, field.name)) is not (int if field.type == "int" else str):
            return None
    return record if path.stem == make_file_key(record.doc_id) else None
