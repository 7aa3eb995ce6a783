"""Protocols of the state that ingestion keeps besides the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from contextlib import AbstractContextManager

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.models import Stage
    from rag_pipeline.core.vectors import ChunkVectors


class EmbeddingCache(Protocol):
    """Vectors by model fingerprint and SHA-256 of the exact text embedded; safe with several
    processes.
    """

    def get_many(self, fingerprint: str, text_hashes: Sequence[str]) -> dict[str, ChunkVectors]:
        """Vectors of those hashes that are there."""

    def put_many(self, fingerprint: str, vectors: Mapping[str, ChunkVectors]) -> None:
        """Keep vectors; all of them or none after a crash."""

    def prune(self, keep: Mapping[str, frozenset[str]]) -> int:
        """Forget everything but the named hashes of the named fingerprints; returns how many were
        forgotten.
        """


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """What was really indexed of one document, written after its points are in (decision 6).

    Attributes:
        sha256: Of the file's bytes that were indexed; empty while its points are being changed.
        size_bytes: With `mtime_ns` the quick test for "unchanged".
        pipeline_fingerprint: Of every setting that shapes chunks, payloads and vectors.
        collection_id: Of the collection that holds the points.
        data_version: Of the chunks written: hash over chunk ids and payload contents.
        run_id: Of the Dagster run that wrote it.
        indexed_at: ISO 8601 in UTC.
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


@dataclass(frozen=True, slots=True)
class LedgerFailure:
    """A document whose last attempts failed; `attempts` counts those in a row on the same file
    content.
    """

    doc_id: DocId
    sha256: str
    stage: str
    error: str
    message: str
    attempts: int
    failed_at: str


class Ledger(Protocol):
    """The record of what is in the store, one entry a document; each write is atomic."""

    def entries(self) -> dict[DocId, LedgerEntry]:
        """All indexed documents."""

    def failures(self) -> dict[DocId, LedgerFailure]:
        """All documents whose last attempt failed."""

    def record(self, entry: LedgerEntry) -> None:
        """Write an entry over the one before and clear the document's failure."""

    def record_begun(self, entry: LedgerEntry) -> None:
        """Write an entry that matches no file, as points are about to change; a failure stays."""

    def record_failure(self, failure: LedgerFailure) -> None:
        """Write a failure; the entry of what is still in the store stays."""

    def forget(self, doc_id: DocId) -> None:
        """Remove entry and failure of a document; one that is not there is passed over."""


class ArtifactStore(Protocol):
    """Where stage outputs rest, one a stage and document; a reader never sees half of one."""

    def write(self, stage: Stage, doc_id: DocId, data: bytes) -> None:
        """Write an output over the one before."""

    def read(self, stage: Stage, doc_id: DocId) -> bytes | None:
        """Read an output; None where there is none."""

    def remove(self, doc_id: DocId) -> None:
        """Remove all outputs of a document; one that has none is passed over."""

    def keep_only(self, doc_ids: Collection[DocId]) -> None:
        """Remove what killed runs left of all other documents; what fails, a later call tries."""


class Lock(Protocol):
    """Holds off other ingestions of this machine for the time of a `with` block."""

    def __call__(self, timeout_s: float | None = None) -> AbstractContextManager[None]:
        """Wait at most so long for one that goes on, or as the settings say where it is None.

        Raises:
            StoreLockedError: It went on for all that time.
        """
