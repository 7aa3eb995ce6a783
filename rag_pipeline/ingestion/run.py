"""One ingestion from start to end: what changed, the stages, deletions, and the switch after a
rebuild.

Belongs here: the decisions of a run on plain data and Protocols. Does not belong here: Dagster,
which starts a run and shows its events (orchestration.assets.ingestion).
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias

from rag_pipeline.core.errors import ConfigurationError, RagPipelineError, RebuildIncompleteError
from rag_pipeline.core.format_version import FORMAT_VERSION
from rag_pipeline.core.ids import DocId, parse_doc_id
from rag_pipeline.core.models import DOCUMENT_MISSING, DocFailure, KnownFile, Stage
from rag_pipeline.core.vectors import EmbeddingSpace
from rag_pipeline.ingestion.changes import compute_pipeline_fingerprint, leave_moved, plan_ingestion
from rag_pipeline.ingestion.discovery import Discovery, discover_docs
from rag_pipeline.ingestion.pipeline import ingest_docs
from rag_pipeline.ingestion.target import prepare_collection
from rag_pipeline.ingestion.work import IngestionServices, StageResult
from rag_pipeline.ingestion.writing import delete_documents, read_times_before

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
    from pathlib import Path

    from rag_pipeline.core.models import ChunkLimits, DiscoveredDoc, SiteSettings
    from rag_pipeline.core.protocols.embedding import Embedder, SparseEncoder
    from rag_pipeline.core.protocols.state import (
        ArtifactStore,
        EmbeddingCache,
        Ledger,
        LedgerEntry,
        Lock,
    )
    from rag_pipeline.core.protocols.stores import CollectionCatalog, PointStore
    from rag_pipeline.ingestion.changes import IngestionPlan
    from rag_pipeline.ingestion.report import IngestionReport

ALL_STAGES = frozenset(Stage)


@dataclass(frozen=True, slots=True)
class IngestionEnvironment:
    """Settings and services of an ingestion; building one opens no store and loads no model.

    Attributes:
        open_artifacts: Stage outputs of a collection by its id.
        open_ledger: The ledger of a collection by its id.
        sweep: Deletes what killed ingestions left behind; called with the lock held.
        max_run_docs: How many documents a bulk ingestion takes in one run.
        observe: Told each event of a run, and last its report or the error that ended it.
    """

    docs_dir: Path
    site: SiteSettings
    limits: ChunkLimits
    embedder: Embedder
    sparse: SparseEncoder
    cache: EmbeddingCache
    catalog: CollectionCatalog
    open_artifacts: Callable[[str], ArtifactStore]
    open_ledger: Callable[[str], Ledger]
    lock: Lock
    sweep: Callable[[], None]
    price_per_token_usd: float = 0.0
    max_run_docs: int = 1000
    observe: Callable[[RunEvent | IngestionReport | Exception], None] = lambda _: None

    @property
    def space(self) -> EmbeddingSpace:
        """What the present settings embed into."""
        return EmbeddingSpace(self.embedder.model, FORMAT_VERSION)

    @property
    def fingerprint(self) -> str:
        """Of every setting that shapes what is indexed."""
        return compute_pipeline_fingerprint(self.space, self.limits, self.site)


@dataclass(frozen=True, slots=True)
class IngestionRequest:
    """What to ingest.

    Attributes:
        doc_ids: Documents to process even where unchanged; None for whatever changed, deletions
            included.
        delete_ids: Documents to remove if they are really gone; only with `doc_ids`.
        stages: Which assets to make.
        rewrite: Write the points of `doc_ids` whole, even those that look unchanged.
        rebuild: Build a new collection of all documents beside the one in use, then switch.
        reread: Read every file instead of trusting the size and time of those known.
    """

    doc_ids: tuple[str, ...] | None = None
    delete_ids: tuple[str, ...] = ()
    stages: frozenset[Stage] = ALL_STAGES
    rewrite: bool = False
    rebuild: bool = False
    reread: bool = False

    def __post_init__(self) -> None:
        """Refuse a rebuild whose collection would lack what only the stages left out can make.

        Raises:
            ConfigurationError: It is a rebuild of some stages.
        """
        if self.rebuild and self.stages != ALL_STAGES:
            left_out = ", ".join(stage.value for stage in Stage if stage not in self.stages)
            problem = f"a new collection takes all assets, and {left_out} would be left out"
            raise ConfigurationError("rebuild", problem, "Materialize all, or leave rebuild out")


@dataclass(frozen=True, slots=True)
class DocDeleted:
    """A document that is gone was removed; one that was never indexed had no points."""

    doc_id: DocId
    point_count: int


@dataclass(frozen=True, slots=True)
class DocsChosen:
    """The documents that a run is about to process; the first event of every run."""

    doc_ids: tuple[DocId, ...]


RunEvent: TypeAlias = DocsChosen | StageResult | DocFailure | DocDeleted


def scan(
    environment: IngestionEnvironment,
) -> tuple[Discovery, IngestionPlan, Mapping[DocId, LedgerEntry]]:
    """Look what an ingestion would do, without a lock, a store or a model.

    Raises:
        DocsFolderError: The docs folder is missing or empty.
    """
    collection_id = environment.catalog.current_id()
    ledger = environment.open_ledger(collection_id) if collection_id else None
    entries, failures = (ledger.entries(), ledger.failures()) if ledger else ({}, {})
    discovery = discover_docs(environment.docs_dir, _known_files(entries))
    plan = plan_ingestion(discovery, entries, environment.fingerprint, failures)
    return discovery, plan, entries


def refresh_ledger(
    ledger: Ledger, unchanged: Iterable[DiscoveredDoc], entries: Mapping[DocId, LedgerEntry]
) -> None:
    """Note new times of files whose content is as indexed: the next scan need not read them."""
    for doc in unchanged:
        entry = entries[doc.doc_id]
        if entry.mtime_ns != doc.mtime_ns:
            ledger.record(replace(entry, mtime_ns=doc.mtime_ns, size_bytes=doc.size_bytes))


def sweep_if_idle(environment: IngestionEnvironment, doc_ids: Collection[DocId]) -> None:
    """Delete what killed ingestions left behind, for an ingestion that has nothing else to do.

    One that goes on sweeps for itself and is not waited for; what fails, a later sweep tries again.

    Args:
        environment: Of the collection in use.
        doc_ids: All documents of docs folder and ledger.
    """
    with suppress(RagPipelineError, OSError), environment.lock(timeout_s=0.0):
        environment.sweep()
        environment.open_artifacts(environment.catalog.current_id() or "").keep_only(doc_ids)


def run_ingestion(
    request: IngestionRequest,
    environment: IngestionEnvironment,
    run_id: str,
    report: IngestionReport,
) -> Generator[RunEvent]:
    """Ingest, and fill the report on the way.

    Raises:
        DocsFolderError: The docs folder is missing or empty; nothing was changed.
        SpaceMismatchError: The collection in use needs a rebuild; nothing was changed.
        StoreUnavailableError: Another ingestion or process holds the store, or no server answers.
        RebuildIncompleteError: Documents failed in a rebuild; the collection in use stays in use.
    """
    start = time.perf_counter()
    report.run_id = run_id
    try:
        with environment.lock():
            with suppress(RagPipelineError, OSError):  # a later run tries again
                environment.sweep()
            for event in _run_locked(request, environment, run_id, report):
                if isinstance(event, DocFailure):
                    report.add_failure(event)
                elif isinstance(event, StageResult):
                    report.add_result(event)
                elif isinstance(event, DocDeleted):
                    report.docs_deleted += 1
                    report.chunks_deleted += event.point_count
                environment.observe(event)
                yield event
    except Exception as error:
        environment.observe(error)
        raise
    report.duration_s = time.perf_counter() - start
    environment.observe(report)


def _run_locked(
    request: IngestionRequest,
    environment: IngestionEnvironment,
    run_id: str,
    report: IngestionReport,
) -> Iterator[RunEvent]:
    known = {} if request.reread else _known_files(_current_entries(environment))
    discovery = discover_docs(environment.docs_dir, known)
    current = environment.catalog.current_id()
    collection_id = prepare_collection(environment, rebuild=request.rebuild)
    report.collection_id = collection_id
    ledger = environment.open_ledger(collection_id)
    entries, failures = ledger.entries(), ledger.failures()
    plan = plan_ingestion(discovery, entries, environment.fingerprint, failures)
    docs, deletes, unknown = _choose(request, discovery, plan)
    chosen = {doc.doc_id for doc in docs}
    report.docs_discovered = len(discovery.docs) + len(discovery.failures)
    left_alone = [doc for doc in plan.unchanged if doc.doc_id not in chosen]
    report.docs_unchanged = len(left_alone)
    report.chunks_unchanged += sum(entries[doc.doc_id].chunk_count for doc in left_alone)
    yield DocsChosen(tuple(doc.doc_id for doc in docs))
    if request.doc_ids is None:
        yield from discovery.failures
    yield from unknown

    def open_store() -> PointStore:
        return environment.catalog.open(collection_id, environment.space)

    services = IngestionServices(
        site=environment.site,
        limits=environment.limits,
        embedder=environment.embedder,
        sparse=environment.sparse,
        cache=environment.cache,
        artifacts=environment.open_artifacts(collection_id),
        ledger=ledger,
        open_store=open_store,
        collection_id=collection_id,
        pipeline_fingerprint=environment.fingerprint,
        price_per_token_usd=environment.price_per_token_usd,
        run_id=run_id,
        rewrite=request.rewrite,
        now=_now,
        entries=entries,
        failures=failures,
        ingested_at_by_content=read_times_before(
            plan.delete if docs and Stage.POINTS in request.stages else (), open_store
        ),
    )
    services.artifacts.keep_only({*entries, *failures, *(doc.doc_id for doc in discovery.docs)})
    yield from ingest_docs(docs, services, request.stages)
    if deletes:
        rest = plan_ingestion(discovery, ledger.entries(), environment.fingerprint).process
        gone = leave_moved(deletes, entries, rest)
        yield from _delete({doc_id: entries.get(doc_id) for doc_id in gone}, services)
    if current is None or not request.rebuild:
        refresh_ledger(ledger, left_alone, entries)
    elif report.failures:
        environment.catalog.discard(collection_id)
        raise RebuildIncompleteError(report.failures)
    else:
        environment.catalog.switch_to(collection_id)


def _choose(
    request: IngestionRequest,
    discovery: Discovery,
    plan: IngestionPlan,
) -> tuple[tuple[DiscoveredDoc, ...], tuple[DocId, ...], tuple[DocFailure, ...]]:
    """Documents to process, documents to delete, and failures for documents asked for and not
    there.
    """
    if request.doc_ids is None:
        return plan.process, plan.delete if Stage.POINTS in request.stages else (), ()
    there = {doc.doc_id: doc for doc in discovery.docs}
    unread = {failure.doc_path: failure for failure in discovery.failures}
    docs, unknown = [], []
    for doc_id in dict.fromkeys(request.doc_ids):
        if doc_id in there:
            docs.append(there[parse_doc_id(doc_id)])
        elif doc_id in unread:
            unknown.append(unread[doc_id])
        else:
            message = f"{doc_id}: is not in the docs folder, or is a draft. Check the path"
            unknown.append(DocFailure(doc_id, Stage.DISCOVERED.value, DOCUMENT_MISSING, message))
    gone = frozenset(plan.delete) & set(request.delete_ids)
    return tuple(docs), tuple(sorted(gone)), tuple(unknown)


def _delete(
    doomed: Mapping[DocId, LedgerEntry | None], services: IngestionServices
) -> Iterator[DocDeleted | DocFailure]:
    try:
        store = services.open_store()
    except RagPipelineError as error:
        for doc_id in doomed:
            yield DocFailure(doc_id, Stage.POINTS.value, type(error).__name__, str(error))
        return
    try:
        for outcome in delete_documents(doomed, store, services.artifacts, services.ledger):
            yield outcome if isinstance(outcome, DocFailure) else DocDeleted(*outcome)
    finally:
        store.close()


def _current_entries(environment: IngestionEnvironment) -> Mapping[DocId, LedgerEntry]:
    collection_id = environment.catalog.current_id()
    return environment.open_ledger(collection_id).entries() if collection_id else {}


def _known_files(entries: Mapping[DocId, LedgerEntry]) -> dict[DocId, KnownFile]:
    return {
        doc_id: KnownFile(entry.size_bytes, entry.mtime_ns, entry.sha256)
        for doc_id, entry in entries.items()
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
