"""The first stages of a document: record, parse and chunk it.

The last stage, which writes the points, is in `writing`.
"""

from __future__ import annotations

import logging
import time
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.ids import hash_text
from rag_pipeline.core.models import Stage
from rag_pipeline.core.protocols import LedgerEntry
from rag_pipeline.core.sources import find_place
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.context import now_utc
from rag_pipeline.ingestion.events import StageDone
from rag_pipeline.ingestion.markdown.source import (
    find_invalid_line,
    has_open_front_matter,
    read_doc,
)
from rag_pipeline.ingestion.parsing import parse_doc
from rag_pipeline.ingestion.partials.splicing import hash_content, read_imports

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from rag_pipeline.core.models import Chunk, DiscoveredDoc, DocFailure, Document, ParsedDoc
    from rag_pipeline.core.protocols import Ledger, PointStore
    from rag_pipeline.core.vectors import ChunkVectors
    from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest
    from rag_pipeline.ingestion.planning import Scan


_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IngestionRun:
    """One ingestion run over one collection, and the state in which it found the collection.

    Attributes:
        run_id: Id of the Dagster run, or any name for a run without Dagster.
        scan: The docs folder and the ledger before the run, with the id of the collection that the
            run writes to.
        ledger: The ledger of this collection.
        times_by_content: Time of first ingestion by content hash, from documents that this run
            deletes. Content that has moved to another page keeps its time.
        store: The open collection if the whole run uses one connection; otherwise None.
    """

    context: IngestionContext
    request: IngestionRequest
    run_id: str
    scan: Scan
    ledger: Ledger
    times_by_content: Mapping[str, str] = field(default_factory=dict)
    store: PointStore | None = None

    def hold_store(self) -> AbstractContextManager[PointStore]:
        """Return a context manager for the open collection; it closes the collection at the end.

        Keep it open only while a group of documents is written, so that other processes can query
        in between. If `store` is set, as in a rebuild, return `store` and leave it open.

        Raises:
            SpaceMismatchError: The collection was built with another embedding space.
            StoreUnavailableError: The store is not reachable, or another process has it open.
        """
        if self.store is not None:
            return nullcontext(self.store)
        catalog = self.context.services.catalog
        return closing(catalog.open(self.scan.collection_id, self.context.space))

    def make_entry(
        self, doc: DiscoveredDoc, *, data_version: str, chunk_count: int, version: int
    ) -> LedgerEntry:
        """Return the ledger entry for a document that this run indexes, with the current time.

        Args:
            doc: The file with the content that is indexed.
            data_version: Hash of the ids and payloads of the document's chunks.
            chunk_count: Number of the document's chunks.
            version: The version of the entry that this one will replace; 0 if there is none.
        """
        return LedgerEntry(
            doc_id=doc.doc_id,
            sha256=doc.sha256,
            size_bytes=doc.size_bytes,
            mtime_ns=doc.mtime_ns,
            pipeline_fingerprint=self.context.fingerprint_of(doc.doc_id),
            collection_id=self.scan.collection_id,
            data_version=data_version,
            chunk_count=chunk_count,
            run_id=self.run_id,
            indexed_at=now_utc(),
            version=version,
        )

    def record_begun(self, entry: LedgerEntry) -> LedgerEntry:
        """Write the ledger entry without its file hash, before the document's points change.

        No file matches such an entry, so if this run is killed, the next run repeats the document.

        Returns:
            The entry as it was written, with its new version.

        Raises:
            LedgerConflictError: Another run has changed the entry since this run has read it.
        """
        return self.ledger.record_begun(replace(entry, sha256="", size_bytes=-1, mtime_ns=0))


@dataclass(slots=True)
class DocInProgress:
    """A document during a run. Each stage fills in its results.

    Attributes:
        doc: The file, with the hash of the content that is indexed.
        document: The parsed metadata and headings.
        chunks: The chunks, in order.
        vectors: The vectors of each chunk, in the order of the chunks; empty for a document whose
            vectors are handled in parts, see `embedding_stage`.
        results: One event per finished stage.
        failure: Set when a stage fails; the later stages are then skipped.
        begun: The entry that this run wrote with `record_begun`; None before that.
    """

    doc: DiscoveredDoc
    document: Document | None = None
    chunks: tuple[Chunk, ...] = ()
    vectors: tuple[ChunkVectors, ...] = ()
    results: dict[Stage, StageDone] = field(default_factory=dict)
    failure: DocFailure | None = None
    begun: LedgerEntry | None = None

    def keep_result(
        self,
        stage: Stage,
        data_version: str,
        counts: Mapping[str, int | float | str],
        warnings: tuple[str, ...] = (),
    ) -> None:
        """Store the event of a finished stage; it replaces an earlier event of the same stage."""
        chunks = self.chunks if stage is Stage.CHUNKS else ()
        self.results[stage] = StageDone(
            stage, self.doc.doc_id, data_version, counts, chunks, warnings=warnings
        )


def prepare_doc(run: IngestionRun, work: DocInProgress) -> None:
    """Run the stages of a document up to chunking.

    Raises:
        DocumentError: The file cannot be read or parsed.
    """
    work.keep_result(Stage.DISCOVERED, work.doc.sha256[:16], {"size_bytes": work.doc.size_bytes})
    _chunk(run, work, _parse(run, work))


def mark_begun(run: IngestionRun, work: DocInProgress) -> None:
    """Mark a changed document's ledger entry as incomplete (see `record_begun`), once per run."""
    doc, entry = work.doc, run.scan.entries.get(work.doc.doc_id)
    wanted = (doc.sha256, run.context.fingerprint_of(doc.doc_id))
    is_indexed = entry is not None and (entry.sha256, entry.pipeline_fingerprint) == wanted
    if work.begun is not None or is_indexed:
        return
    work.begun = run.record_begun(
        entry or run.make_entry(doc, data_version="", chunk_count=0, version=0)
    )


def _parse(run: IngestionRun, work: DocInProgress) -> ParsedDoc:
    start = time.perf_counter()
    _LOG.info("parsing %s (%d KB)", work.doc.doc_id, work.doc.size_bytes // 1000)
    place = find_place(work.doc.source, work.doc.doc_id)
    data = read_doc(work.doc)
    # The file may have changed since the scan. The bytes read here are what is indexed.
    imported = read_imports(place, work.doc.path, data, work.doc.built)
    work.doc = doc = _take_content(work.doc, hash_content(data, imported))
    parsed = parse_doc(doc, run.context.settings.site, data, imported)
    document = parsed.document
    counts: dict[str, int | float | str] = {
        "title": document.title,
        "url": document.url,
        "heading_count": len(document.headings),
        "block_count": len(parsed.blocks),
        "expressions_left_out": parsed.notes.left_out,
        "components_left_out": " ".join(parsed.notes.components),
        "duration_s": time.perf_counter() - start,
    }
    if invalid_line := find_invalid_line(data):
        counts["invalid_line"] = invalid_line
    warnings = parsed.notes.warnings
    if has_open_front_matter(parsed.source):
        problem = "the front matter has no `---` at its end, so it was read as text. Add that line"
        warnings = (*warnings, f"{doc.doc_id}: {problem}")
    version = hash_text(repr((document, parsed.source)))[:16]
    work.keep_result(Stage.PARSED, version, counts, warnings)
    return parsed


def _chunk(run: IngestionRun, work: DocInProgress, parsed: ParsedDoc) -> None:
    start = time.perf_counter()
    _LOG.info("chunking %s, which has %d blocks", work.doc.doc_id, len(parsed.blocks))
    chunks = chunk_doc(parsed, run.context.settings.chunk_limits)
    work.document, work.chunks = parsed.document, chunks
    mark_begun(run, work)
    fingerprint = run.context.fingerprint_of(work.doc.doc_id)
    version = hash_text(repr((work.doc.sha256, fingerprint, parsed.document, chunks)))[:16]
    tokens = [chunk.token_count for chunk in chunks]
    counts: dict[str, int | float | str] = {
        "chunk_count": len(chunks),
        "token_total": sum(tokens),
        "token_max": max(tokens, default=0),
        "word_total": sum(chunk.word_count for chunk in chunks),
        "duration_s": time.perf_counter() - start,
    }
    work.keep_result(Stage.CHUNKS, version, counts)


def _take_content(doc: DiscoveredDoc, sha256: str) -> DiscoveredDoc:
    """Return `doc` with the hash of the content that this run indexes.

    If the scan found another hash, the size becomes -1. No file has this size, so the next scan
    reads the file again.
    """
    if sha256 == doc.sha256:
        return doc
    return replace(doc, sha256=sha256, size_bytes=-1, mtime_ns=0)
