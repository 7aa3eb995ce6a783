"""Protocols of the state that ingestion keeps outside the vector store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.site.source_entries import RecordedSite
    from rag_pipeline.core.vectors import ChunkVectors


class EmbeddingCache(Protocol):
    """A cache of the vectors of embedded texts, which several processes may use at the same time.

    Besides the vector store, it is the only place that has the vectors.
    The key of an entry is the fingerprint of the embedding model and the SHA-256 of the text.
    """

    def get_many(self, fingerprint: str, text_hashes: Sequence[str]) -> dict[str, ChunkVectors]:
        """Return the cached vectors of the given texts, by text hash; missing texts are left out.

        Args:
            fingerprint: Fingerprint of the embedding model.
            text_hashes: SHA-256 of each embedded text.
        """

    def put_many(self, fingerprint: str, vectors: Mapping[str, ChunkVectors]) -> None:
        """Store the vectors of texts.

        A crash may lose entries, but never leaves a part of an entry.

        Args:
            fingerprint: Fingerprint of the embedding model.
            vectors: The vectors of each text, by the SHA-256 of the text.
        """

    def prune(self, keep: Mapping[str, Iterable[str]]) -> int:
        """Delete all entries except the given ones and return the number of deleted entries.

        Args:
            keep: Text hashes to keep, by fingerprint of the embedding model. Each is read once.
        """

    def close(self) -> None:
        """Release the file or connection; the next call opens it again."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """The ledger's record of one indexed document.

    It is written when all points of the document are stored. A provisional entry, with an empty
    `sha256`, is written before the points are changed.

    Attributes:
        doc_id: Path of the document below the docs folder.
        sha256: Hash of the bytes of the indexed file; empty in a provisional entry.
        size_bytes: Size of the file. A file with the same size and `mtime_ns` counts as unchanged.
        mtime_ns: Time of the file's last change in nanoseconds.
        pipeline_fingerprint: Hash of every setting that affects chunks, payloads or vectors.
        collection_id: Id of the collection that contains the points.
        data_version: Hash of the ids and payloads of the stored chunks.
        chunk_count: Number of the document's chunks.
        run_id: Id of the ingestion run that wrote the entry.
        indexed_at: Time of writing, ISO 8601 in UTC.
        version: Number of writes of this entry. A write succeeds only if the ledger still has the
            version that the writer has read. 0 means that the writer has found no entry.
    """

    doc_id: DocId
    sha256: str
    size_bytes: int
    mtime_ns: int
    pipeline_fingerprint: str
    collection_id: str
    data_version: str
    chunk_count: int
    run_id: str
    indexed_at: str
    version: int = 0


@dataclass(frozen=True, slots=True)
class LedgerFailure:
    """The record of a document whose last ingestion failed.

    Attributes:
        doc_id: Path of the document below the docs folder.
        sha256: Hash of the file's bytes at the last attempt.
        stage: Name of the stage that failed.
        error: Code or class name of the error.
        message: Message of the error.
        attempts: Number of failures in a row with the same file content.
        failed_at: Time of the last failure, ISO 8601 in UTC.
    """

    doc_id: DocId
    sha256: str
    stage: str
    error: str
    message: str
    attempts: int
    failed_at: str


class Ledger(Protocol):
    """The record of what is indexed in a collection, with one entry per document.

    Each write of an entry compares and swaps: it succeeds only if the ledger has the version of the
    entry that the writer has read. A worker with old knowledge thus changes no newer entry.
    """

    def entries(self) -> dict[DocId, LedgerEntry]:
        """Return the entries of indexed documents, by document id."""

    def failures(self) -> dict[DocId, LedgerFailure]:
        """Return the failures of documents whose last ingestion failed, by document id."""

    def record(self, entry: LedgerEntry) -> LedgerEntry:
        """Write the entry of a document, replacing its old entry, and delete its failure record.

        Args:
            entry: The new entry, with the version of the entry that it replaces.

        Returns:
            The entry with its new version, for the next write.

        Raises:
            LedgerConflictError: The ledger has another version. Nothing was written.
        """

    def record_begun(self, entry: LedgerEntry) -> LedgerEntry:
        """Write a provisional entry for a document, before the document's points are changed.

        The entry's `sha256` is empty and so matches no file. If the process is killed before
        `record` is called, the document is therefore indexed again. Its failure record is kept.
        Argument, result and errors are those of `record`.
        """

    def record_failure(self, failure: LedgerFailure) -> None:
        """Write the failure record of a document. Its ledger entry, if any, stays unchanged.

        A failure only causes another try, so this write compares nothing.
        """

    def forget(self, doc_id: DocId, version: int) -> None:
        """Delete the document's ledger entry and its failure record, if they exist.

        Args:
            doc_id: Id of the document.
            version: The version of the entry that the caller has read; 0 if it has found none.

        Raises:
            LedgerConflictError: The ledger has another version. Nothing was deleted.
        """

    def claim(self, doc_ids: Collection[DocId], run_id: str) -> set[DocId]:
        """Claim documents for a run, and return those that the run has now.

        A document that another run has claimed is not returned, as long as a process holds the lock
        of that run. So the caller holds the lock of its own run.
        """

    def release(self, run_id: str) -> None:
        """Give back all claims of a run."""

    def record_site(self, site: RecordedSite) -> None:
        """Write the site for which the links of all indexed documents were built."""

    def read_site(self) -> RecordedSite | None:
        """Return what `record_site` wrote; None if there is nothing readable."""


@dataclass(frozen=True, slots=True)
class IngestionProgress:
    """How far a running ingestion is.

    Attributes:
        done: Number of documents whose current content is indexed or has failed.
        total: Number of documents in the docs folder; 0 if they have not been counted yet.
    """

    done: int
    total: int


class Announce(Protocol):
    """A function that tells other processes how far the running ingestion is."""

    def __call__(self, done: int, total: int) -> None:
        """Publish the numbers of `IngestionProgress`."""


class Lock(Protocol):
    """A lock of a book that only one process can hold at a time."""

    def __call__(self, timeout_s: float | None = None) -> AbstractContextManager[None]:
        """Return a context manager that holds the lock during a `with` block.

        Args:
            timeout_s: Longest wait for the lock in seconds; None for the wait set in the settings.

        Raises:
            StoreLockedError: Another process held the lock during the whole wait.
        """


class RunLock(Protocol):
    """The lock of a run, held while a process executes the run."""

    def check(self) -> None:
        """Check that the lock was held without a break, so that the run may write more documents.

        Raises:
            DatabaseUnavailableError: The connection of the lock was lost. The run must end.
        """

    def release(self) -> None:
        """Release the lock."""


class RunLocks(Protocol):
    """Locks by which all machines see which runs of a book have a living process."""

    @property
    def state_name(self) -> str:
        """Name of the book's state, equal on all machines."""

    def hold(self, run_id: str) -> RunLock:
        """Take the lock of a run, and return it. Several processes can hold it at the same time.

        The lock ends with the process, its machine or its network.

        Raises:
            DatabaseUnavailableError: The database of the locks cannot be reached.
        """

    def find_held(self, run_ids: Collection[str]) -> set[str]:
        """Return those of the runs whose lock a process on any machine holds.

        Raises:
            DatabaseUnavailableError: The database of the locks cannot be reached.
        """
