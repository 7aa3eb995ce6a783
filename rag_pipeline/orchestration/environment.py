"""The ingestion environment of some settings: which adapters a run gets, and where state rests
under DATA_DIR.

    <state folder>/artifacts/       stage outputs
    <state folder>/cache.sqlite     embeddings by text and model
    <state folder>/ledger/<id>/     what was really indexed, per collection
    <state folder>/store/<name>/    the embedded store, where QDRANT_URL is unset

Imports no Dagster: a command that finds nothing to do never loads it.
"""

from functools import partial

from upath import UPath

from rag_pipeline.adapters.bm25_encoder import Bm25Encoder
from rag_pipeline.adapters.connect import connect_catalog, connect_embedder
from rag_pipeline.adapters.embedding_cache import SqliteEmbeddingCache
from rag_pipeline.adapters.file_ledger import FileLedger
from rag_pipeline.adapters.process_lock import hold_lock
from rag_pipeline.core.ports import Ledger
from rag_pipeline.core.settings import Settings
from rag_pipeline.ingestion.run import IngestionEnvironment
from rag_pipeline.orchestration.artifacts import UPathArtifactStore


def build_environment(settings: Settings) -> IngestionEnvironment:
    """Wire an ingestion; opens no store, asks no service and loads no model.

    Raises:
        ConfigurationError: A key or model that the settings need is missing.
    """
    state_dir = settings.state_dir
    embedder = connect_embedder(settings)

    def open_ledger(collection_id: str) -> Ledger:
        return FileLedger(state_dir / "ledger" / collection_id)

    return IngestionEnvironment(
        docs_dir=settings.docs_dir,
        site=settings.site,
        limits=settings.chunk_limits,
        embedder=embedder,
        sparse=Bm25Encoder(),
        cache=SqliteEmbeddingCache(state_dir / "cache.sqlite"),
        artifacts=UPathArtifactStore(UPath(state_dir / "artifacts")),
        catalog=connect_catalog(settings),
        open_ledger=open_ledger,
        lock=partial(hold_lock, state_dir / "ingest.lock", settings.ingest_lock_timeout_s),
        price_per_token_usd=settings.embedding_prices.get(embedder.model.model, 0.0) / 1e6,
    )
