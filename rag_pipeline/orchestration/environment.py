"""The ingestion environment of some settings: which adapters a run gets, and where state rests
under DATA_DIR.

    <state folder>/artifacts/<id>/  stage outputs, per collection
    <state folder>/cache.sqlite     embeddings by text and model
    <state folder>/ledger/<id>/     what was really indexed, per collection
    <state folder>/store/<name>/    the embedded store, where QDRANT_URL is unset

With STATE_URL, artifacts, embeddings and ledger rest on that store instead, for workers that share
no disk.

Imports no Dagster: a command that finds nothing to do never loads it.
"""

from contextlib import AbstractContextManager, suppress
from pathlib import Path

from upath import UPath

from rag_pipeline.adapters.connect import connect_catalog, connect_embedder
from rag_pipeline.adapters.embedders.bm25 import Bm25Encoder
from rag_pipeline.adapters.state.artifacts import UPathArtifactStore
from rag_pipeline.adapters.state.files import remove_partial_files, remove_tree
from rag_pipeline.adapters.state.ledger import FileLedger
from rag_pipeline.adapters.state.locks import hold_lock
from rag_pipeline.adapters.state.object_cache import ObjectEmbeddingCache
from rag_pipeline.adapters.state.sqlite_cache import SqliteEmbeddingCache
from rag_pipeline.core.errors import ConfigurationError, StoreLockedError
from rag_pipeline.core.models import ContentType, JsonValue
from rag_pipeline.core.protocols.state import ArtifactStore, Ledger
from rag_pipeline.core.protocols.stores import PointFilter
from rag_pipeline.core.settings import Settings
from rag_pipeline.ingestion.run import IngestionEnvironment


def build_environment(settings: Settings) -> IngestionEnvironment:
    """Wire an ingestion; opens no store, asks no service and loads no model.

    Raises:
        ConfigurationError: A key or model that the settings need is missing, or STATE_URL is of
            no use.
    """
    state_dir = settings.state_dir
    embedder = connect_embedder(settings)

    shared = _open_state(settings.state_url) / state_dir.name if settings.state_url else None
    root = shared or UPath(state_dir)

    def open_artifacts(collection_id: str) -> ArtifactStore:
        return UPathArtifactStore(root / "artifacts" / collection_id)

    def open_ledger(collection_id: str) -> Ledger:
        return FileLedger(root / "ledger" / collection_id)

    def forget(collection_id: str) -> None:
        for kind in ("artifacts", "ledger"):
            remove_tree(root / kind / collection_id)

    catalog = connect_catalog(settings, forget)

    def lock(timeout_s: float | None = None) -> AbstractContextManager[None]:
        wait_s = settings.ingest_lock_timeout_s if timeout_s is None else timeout_s
        return hold_lock(state_dir / "ingest.lock", wait_s)

    def sweep() -> None:
        catalog.sweep()
        for name in catalog.find_cells():
            with suppress(StoreLockedError), hold_lock(locate_cell_lock(settings, name), 0.0):
                cell = settings.model_copy(update={"qdrant_collection": name})
                connect_catalog(cell, forget).drop()
        remove_partial_files(state_dir)

    return IngestionEnvironment(
        docs_dir=settings.docs_dir,
        site=settings.site,
        limits=settings.chunk_limits,
        embedder=embedder,
        sparse=Bm25Encoder(),
        cache=ObjectEmbeddingCache(shared / "cache")
        if shared
        else SqliteEmbeddingCache(state_dir / "cache.sqlite"),
        catalog=catalog,
        open_artifacts=open_artifacts,
        open_ledger=open_ledger,
        lock=lock,
        sweep=sweep,
        max_run_docs=settings.ingest_run_docs,
        price_per_token_usd=settings.embedding_prices.get(embedder.model.model, 0.0) / 1e6,
    )


def _open_state(url: str) -> UPath:
    """The root that STATE_URL names; a folder of this machine as a `Path`, so that it is written
    atomically whichever way it is spelled.
    """
    try:
        root = UPath(url)
        root.fs  # noqa: B018  # made on first use, and with it what is wrong found out
    except Exception as error:  # each file system has errors of its own
        problem = f"it cannot be opened ({error})"
        mend = "Use such as s3://bucket/prefix, and install the package of its kind (s3fs)"
        raise ConfigurationError("STATE_URL", problem, mend) from error
    return UPath(root.path) if root.protocol in {"file", "local"} else root


def locate_cell_lock(settings: Settings, collection: str) -> Path:
    """The lock that is held while a design's collection is built and evaluated."""
    return settings.state_dir / "cells" / f"{collection}.lock"


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
