"""The ledger, a record of which documents are indexed, as one small JSON file per document."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rag_pipeline.adapters.state.damage import warn_once
from rag_pipeline.adapters.state.files import (
    list_names,
    read_file,
    remove_file,
    write_bytes_atomically,
    write_text_atomically,
)
from rag_pipeline.adapters.state.ledger_records import (
    Record,
    dump_record,
    dump_site,
    load_site,
    parse_record,
    read_version,
    select_names,
)
from rag_pipeline.adapters.state.objects import (
    can_compare,
    compute_version,
    find_version,
    list_objects,
    read_object,
    replace_object,
    write_object,
)
from rag_pipeline.core.buckets import BUCKET_COUNT
from rag_pipeline.core.errors import LedgerConflictError, StoreError
from rag_pipeline.core.ids import make_file_key
from rag_pipeline.core.protocols.state import LedgerEntry, LedgerFailure

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from upath import UPath

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.site.source_entries import RecordedSite

_SITE_FILE: Final = "site.json"
_REQUESTS_AT_A_TIME: Final = 16


class FileLedger:
    """A ledger (the record of which documents are indexed) in a folder or on an object store.

    The entry of a document is in `indexed/<file key>.json`, the record of its last failure in
    `failed/<file key>.json`. The file key is a hash of the document's id. Each file contains the
    id itself. The site settings of all links are in `site.json`.

    On an object store, an object is read again only if its version (ETag) has changed since this
    instance read or wrote it. S3 itself compares before a write (`If-Match`). Other object stores
    cannot: there, two writers that write one entry at the very same moment are not told apart.

    Args:
        root: Folder of the ledger. Each build (version) of a collection has a folder of its own, so
            that a rollback to the previous build also brings back that build's ledger.
        bucket_count: Number of buckets (groups of documents) of the book.
    """

    def __init__(self, root: Path | UPath, bucket_count: int = BUCKET_COUNT) -> None:
        self._root = root
        self._bucket_count = bucket_count
        self._known: dict[str, tuple[str, bytes]] = {}  # version and content, by path

    def entries(self, buckets: Collection[int] | None = None) -> dict[DocId, LedgerEntry]:
        """Return the ledger entries of the indexed documents in the buckets, by document id.

        A damaged entry counts as missing, with a warning, so its document is indexed again.

        Raises:
            StoreError: The permissions or the disk prevent reading a file of the ledger.
        """
        return {entry.doc_id: entry for entry in self._read_all("indexed", LedgerEntry, buckets)}

    def failures(self, buckets: Collection[int] | None = None) -> dict[DocId, LedgerFailure]:
        """Return the failure records of the documents in the buckets, by document id.

        A damaged record counts as missing, with a warning.

        Raises:
            StoreError: The permissions or the disk prevent reading a file of the ledger.
        """
        return {one.doc_id: one for one in self._read_all("failed", LedgerFailure, buckets)}

    def record(self, entry: LedgerEntry) -> LedgerEntry:
        """Write the ledger entry of an indexed document, then delete its failure record.

        Returns:
            The entry with its new version.

        Raises:
            LedgerConflictError: The ledger has another version than `entry`. Nothing was written.
        """
        written = self._swap(entry)
        remove_file(self._path("failed", entry.doc_id))
        return written

    def record_begun(self, entry: LedgerEntry) -> LedgerEntry:
        """Write a provisional ledger entry for a document, before its points are changed.

        The entry must have an empty `sha256`, so that the document does not count as indexed until
        `record` is called. A failure record of the document stays. The result and the errors are
        those of `record`.
        """
        return self._swap(entry)

    def record_failure(self, failure: LedgerFailure) -> None:
        """Write the failure record of a document; its ledger entry stays unchanged."""
        self._write("failed", failure.doc_id, dump_record(failure))

    def forget(self, doc_id: DocId, version: int) -> None:
        """Delete the document's ledger entry and its failure record, if they exist.

        Raises:
            LedgerConflictError: The ledger has another version of the entry. Nothing was deleted.
        """
        path = self._path("indexed", doc_id)
        with _alone(path.parent):
            _compare(path, doc_id, version)
            remove_file(path)
        if not isinstance(path, Path):
            self._known.pop(path.path, None)
        remove_file(self._path("failed", doc_id))

    def discard_damaged(self) -> None:
        """Delete the damaged files of the ledger, which no document can replace any more."""
        kinds: tuple[tuple[str, type], ...] = (("indexed", LedgerEntry), ("failed", LedgerFailure))
        for kind, record_class in kinds:
            for path, data in self._read_files(kind):
                if parse_record(path, data, record_class) is None:
                    remove_file(path)

    def record_site(self, site: RecordedSite) -> None:
        """Write the site for which the links of all indexed documents were built."""
        text = json.dumps(dump_site(site), indent=1) + "\n"
        write_text_atomically(self._root / _SITE_FILE, text)

    def read_site(self) -> RecordedSite | None:
        """Return the recorded site; None if it is missing or cannot be read."""
        try:
            return load_site(json.loads(read_file(self._root / _SITE_FILE)))
        except (OSError, ValueError):
            return None

    def _path(self, kind: str, doc_id: DocId) -> Path | UPath:
        return self._root / kind / f"{make_file_key(doc_id)}.json"

    def _swap(self, entry: LedgerEntry) -> LedgerEntry:
        written = dataclasses.replace(entry, version=entry.version + 1)
        path, data = self._path("indexed", entry.doc_id), dump_record(written)
        if isinstance(path, Path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with _alone(path.parent):
                _compare(path, entry.doc_id, entry.version)
                write_bytes_atomically(path, data)
        elif can_compare(path):
            self._swap_object(path, entry, data)
        else:
            _compare(path, entry.doc_id, entry.version)
            write_object(path, data)
            self._known[path.path] = (compute_version(data), data)
        return written

    def _swap_object(self, path: UPath, entry: LedgerEntry, data: bytes) -> None:
        """Write an entry to a storage that compares before it writes, with one request.

        An entry that this instance has not read, or not lately, needs two more.
        """
        known = self._known.get(path.path)
        if (read_version(path, known[1]) if known else 0) != entry.version:
            known = None
            with suppress(FileNotFoundError):
                known = (find_version(path), read_object(path))
            if (read_version(path, known[1]) if known else 0) != entry.version:
                raise LedgerConflictError(entry.doc_id)
        version = replace_object(path, data, known[0] if known else "")
        if version is None:
            self._known.pop(path.path, None)
            raise LedgerConflictError(entry.doc_id)
        self._known[path.path] = (version, data)

    def _write(self, kind: str, doc_id: DocId, data: bytes) -> None:
        path = self._path(kind, doc_id)
        write_bytes_atomically(path, data)
        if not isinstance(path, Path):
            self._known[path.path] = (compute_version(data), data)

    def _read_files(
        self, kind: str, buckets: Collection[int] | None = None
    ) -> Iterator[tuple[Path | UPath, bytes]]:
        """Yield path and content of the files of a kind and of buckets, in the order of the names.

        Files that another run deletes after the folder was listed are left out.
        """
        folder = self._root / kind
        if not isinstance(folder, Path):
            yield from self._read_objects(folder, buckets)
            return
        with _readable(folder):
            names = select_names(list_names(folder), buckets, self._bucket_count)
        plain = Path(folder)  # joining a UPath takes three times as long
        for name in names:
            path = plain / name
            with suppress(FileNotFoundError), _readable(path):
                yield path, path.read_bytes()

    def _read_objects(
        self, folder: UPath, buckets: Collection[int] | None
    ) -> Iterator[tuple[UPath, bytes]]:
        with _readable(folder):
            listed = list_objects(folder)
        names = select_names(listed, buckets, self._bucket_count)
        places = {folder / name: listed[name] for name in names}
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

    def _read_all(
        self, kind: str, record_class: type[Record], buckets: Collection[int] | None
    ) -> Iterator[Record]:
        for path, data in self._read_files(kind, buckets):
            record = parse_record(path, data, record_class)
            if record is not None:
                yield record
                continue
            warn_once(
                f"the ledger file {path} is damaged and counts as missing. The next `rag-pipeline "
                "ingest` indexes its document again; `rag-pipeline audit --repair` also removes "
                "what is left of a deleted document"
            )


@contextmanager
def _alone(folder: Path | UPath) -> Iterator[None]:
    """Keep other writers of the ledger out, between the comparison and the write.

    The folder itself is locked, so no lock file is left behind. An object store has no locks.
    """
    if not isinstance(folder, Path) or not folder.is_dir():
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


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


def _compare(path: Path | UPath, doc_id: DocId, version: int) -> None:
    """Raise a LedgerConflictError if the file of an entry has another version."""
    found = 0
    with suppress(FileNotFoundError):
        found = read_version(path, read_file(path))
    if found != version:
        raise LedgerConflictError(doc_id)
