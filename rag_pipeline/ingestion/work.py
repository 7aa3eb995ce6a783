"""A document on its way through the stages, and all that a run has for it.

Belongs here: the state of a document in a run, and keeping its failure. Does not belong here: what
a stage does (preparing, pipeline, writing).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rag_pipeline.core.errors import ConfigurationError, RagPipelineError
from rag_pipeline.core.models import DocFailure, Stage
from rag_pipeline.core.protocols.state import LedgerEntry, LedgerFailure
from rag_pipeline.ingestion.writing import begin_change

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.models import Chunk, ChunkLimits, DiscoveredDoc, Document, SiteSettings
    from rag_pipeline.core.protocols.embedding import Embedder, SparseEncoder
    from rag_pipeline.core.protocols.state import ArtifactStore, EmbeddingCache, Ledger
    from rag_pipeline.core.protocols.stores import PointStore
    from rag_pipeline.core.vectors import ChunkVectors
    from rag_pipeline.ingestion.soundness import Fault


@dataclass(frozen=True, slots=True)
class IngestionServices:
    """Everything outside that a run needs.

    Attributes:
        open_store: Gives the collection the run writes to.
        entries: The ledger's, as they were before the run.
        failures: The same.
        ingested_at_by_content: Of documents that the run removes afterwards.
    """

    site: SiteSettings
    limits: ChunkLimits
    embedder: Embedder
    sparse: SparseEncoder
    cache: EmbeddingCache
    artifacts: ArtifactStore
    ledger: Ledger
    open_store: Callable[[], PointStore]
    collection_id: str
    pipeline_fingerprint: str
    price_per_token_usd: float
    run_id: str
    rewrite: bool
    now: Callable[[], str]
    entries: Mapping[DocId, LedgerEntry]
    failures: Mapping[DocId, LedgerFailure]
    ingested_at_by_content: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StageResult:
    """A stage finished for a document.

    Attributes:
        data_version: Changes whenever the output does.
        counts: What the stage counted; keys are metadata names with their unit.
        chunks: The document's chunks where the stage made them, for a preview.
        faults: What breaks a rule of soundness.CHECKS in the points written: its name, and how.
    """

    stage: Stage
    doc_id: DocId
    data_version: str
    counts: Mapping[str, int | float | str]
    chunks: tuple[Chunk, ...] = ()
    faults: tuple[Fault, ...] = ()


@dataclass(slots=True)
class DocWork:
    """A document on its way; fields fill up stage by stage."""

    doc: DiscoveredDoc
    document: Document | None = None
    chunks: tuple[Chunk, ...] = ()
    vectors: tuple[ChunkVectors, ...] = ()
    failure: DocFailure | None = None
    faults: tuple[Fault, ...] = ()
    begun: bool = False
    counts: dict[Stage, dict[str, int | float | str]] = field(default_factory=dict)
    versions: dict[Stage, str] = field(default_factory=dict)


def attempt(work: DocWork, stage: Stage, action: Callable[[], object]) -> None:
    """Run a step of a document that has not failed yet; keep its failure instead of raising.

    A wrong setting is no fault of the document and ends the run.
    """
    if work.failure is None:
        try:
            action()
        except ConfigurationError:
            raise
        except Exception as error:  # noqa: BLE001  # one page must not cost the others, whatever is in it
            work.failure = make_failure(work.doc.doc_id, stage, error)


def make_failure(doc_id: DocId, stage: Stage, error: Exception) -> DocFailure:
    """Describe what went wrong; an error that we did not foresee names the document."""
    message, name = str(error), type(error).__name__
    if not isinstance(error, (RagPipelineError, OSError)):
        message = f"{doc_id}: {name} in {stage.value}: {message}. Please report it with the page"
    return DocFailure(doc_id, stage.value, name, message)


def keep_failure(work: DocWork, services: IngestionServices) -> None:
    """Count the failure in the ledger; a ledger that cannot be written must not hide it."""
    failure = work.failure
    if failure is None:
        return
    try:
        before = services.failures.get(work.doc.doc_id)
        same = before is not None and before.sha256 == work.doc.sha256
        services.ledger.record_failure(
            LedgerFailure(
                doc_id=work.doc.doc_id,
                sha256=work.doc.sha256,
                stage=failure.stage,
                error=failure.error,
                message=failure.message,
                attempts=(before.attempts + 1) if before is not None and same else 1,
                failed_at=services.now(),
            )
        )
    except (RagPipelineError, OSError) as error:
        message = f"{failure.message} (and the ledger could not be written: {error})"
        work.failure = replace(failure, message=message)


def mark_begun(work: DocWork, services: IngestionServices) -> None:
    """Note, once a run, that a document's artifacts and points will be others than its entry's."""
    doc, entry = work.doc, services.entries.get(work.doc.doc_id)
    if work.begun or (
        entry is not None
        and (entry.sha256, entry.pipeline_fingerprint)
        == (doc.sha256, services.pipeline_fingerprint)
    ):
        return
    if entry is None:
        entry = LedgerEntry(
            doc_id=doc.doc_id,
            sha256="",
            size_bytes=-1,
            mtime_ns=0,
            pipeline_fingerprint=services.pipeline_fingerprint,
            collection_id=services.collection_id,
            data_version="",
            chunk_count=0,
            run_id=services.run_id,
            indexed_at="",
        )
    begin_change(entry, services.ledger)
    work.begun = True
