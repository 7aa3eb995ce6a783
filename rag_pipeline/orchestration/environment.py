"""The ingestion environment of some settings: which adapters a run gets, and where state rests
under DATA_DIR.

    <state folder>/artifacts/       stage outputs
    <state folder>/cache.sqlite     embeddings by text and model
    <state folder>/ledger/<id>/     what was really indexed, per collection
    <state folder>/store/<name>/    the embedded store, where QDRANT_URL is unset

With STATE_URL, artifacts, embeddings and ledger rest on that store instead, for workers that share
no disk.

Imports no Dagster: a command that finds nothing to do never loads it.
"""

from collections.abc import Sequence
from functools import partial

from upath import UPath

from rag_pipeline.adapters.bm25_encoder import Bm25Encoder
from rag_pipeline.adapters.connect import connect_catalog, connect_embedder
from rag_pipeline.adapters.embedding_cache import SqliteEmbeddingCache
from rag_pipeline.adapters.file_ledger import FileLedger
from rag_pipeline.adapters.object_cache import ObjectEmbeddingCache
from rag_pipeline.adapters.process_lock import hold_lock
from rag_pipeline.core.ids import PointId
from rag_pipeline.core.models import ContentType, JsonValue
from rag_pipeline.core.ports import Ledger, PointFilter
from rag_pipeline.core.settings import Settings
from rag_pipeline.ingestion.audit import AuditReport, audit_collection
from rag_pipeline.ingestion.run import IngestionEnvironment
from rag_pipeline.orchestration.artifacts import UPathArtifactStore


def build_environment(settings: Settings) -> IngestionEnvironment:
    """Wire an ingestion; opens no store, asks no service and loads no model.

    Raises:
        ConfigurationError: A key or model that the settings need is missing.
    """
    state_dir = settings.state_dir
    embedder = connect_embedder(settings)

    shared = UPath(settings.state_url) / state_dir.name if settings.state_url else None
    root = shared or UPath(state_dir)

    def open_ledger(collection_id: str) -> Ledger:
        return FileLedger(root / "ledger" / collection_id)

    return IngestionEnvironment(
        docs_dir=settings.docs_dir,
        site=settings.site,
        limits=settings.chunk_limits,
        embedder=embedder,
        sparse=Bm25Encoder(),
        cache=ObjectEmbeddingCache(shared / "cache")
        if shared
        else SqliteEmbeddingCache(state_dir / "cache.sqlite"),
        artifacts=UPathArtifactStore(root / "artifacts"),
        catalog=connect_catalog(settings),
        open_ledger=open_ledger,
        lock=partial(hold_lock, state_dir / "ingest.lock", settings.ingest_lock_timeout_s),
        max_run_docs=settings.ingest_run_docs,
        price_per_token_usd=settings.embedding_prices.get(embedder.model.model, 0.0) / 1e6,
    )


def read_stats(environment: IngestionEnvironment) -> dict[str, JsonValue]:
    """What the collection in use holds: counts by document and kind, its space, when it was last
    written.

    Raises:
        CollectionMissingError: Nothing has been ingested yet.
        StoreUnavailableError: The store is held by another process or not reached.
    """
    store = environment.catalog.open_current()
    try:
        count = store.count()
        by_type: dict[str, JsonValue] = {
            kind.value: store.count(PointFilter(content_types=(kind.value,)))
            for kind in ContentType
        }
        space, collection_id = store.space, store.collection_id
    finally:
        store.close()
    ledger = environment.open_ledger(collection_id)
    entries = [entry for entry in ledger.entries().values() if entry.sha256]
    model = space.model
    return {
        "collection_id": collection_id,
        "point_count": count,
        "doc_count": len(entries),
        "failed_doc_count": len(ledger.failures()),
        "content_types": by_type,
        "provider": model.provider,
        "model": model.model,
        "dim": model.dim,
        "format_version": space.format_version,
        "last_indexed_at": max((entry.indexed_at for entry in entries), default=None),
    }


def audit_environment(environment: IngestionEnvironment) -> AuditReport:
    """Compare ledger, artifacts and store of the collection in use.

    Raises:
        CollectionMissingError: Nothing has been ingested yet.
        StoreUnavailableError: The store is held by another process or not reached.
    """
    store = environment.catalog.open_current()
    try:
        points = store.scroll(with_vectors=True)
        collection_id = store.collection_id
    finally:
        store.close()
    return audit_collection(
        collection_id,
        points,
        environment.open_ledger(collection_id).entries(),
        environment.artifacts,
        environment.fingerprint,
    )


def delete_points(environment: IngestionEnvironment, point_ids: Sequence[PointId]) -> None:
    """Delete points that stand for no chunk, while no ingestion runs."""
    if point_ids:
        with environment.lock():
            store = environment.catalog.open_current(environment.space)
            try:
                store.delete(point_ids)
            finally:
                store.close()


def prune_embeddings(environment: IngestionEnvironment) -> int:
    """Forget cached embeddings of texts that no indexed chunk has; returns how many were
    forgotten.
    """
    store = environment.catalog.open_current()
    try:
        hashes = frozenset(str(point.payload.get("embedding_hash")) for point in store.scroll())
        fingerprint = store.space.model.fingerprint
    finally:
        store.close()
    return environment.cache.prune({fingerprint: hashes})
