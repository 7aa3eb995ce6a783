"""From settings to a retriever: the only module of this folder that reaches adapters.

They are imported when a retriever is opened, so that importing the library costs nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.vectors import FORMAT_VERSION, EmbeddingSpace

if TYPE_CHECKING:
    from rag_pipeline.core.protocols.embedding import Embedder, Reranker
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.retrieval.protection.limits import ServiceLimits
    from rag_pipeline.retrieval.retriever import Retriever

_SERVER_RECHECK_S: Final = 1.0  # asking a server which collection is in use costs a round trip
_OWN_TIMEOUTS_FIRST_S: Final = 2.0


def open_retriever(
    settings: Settings | None = None,
    *,
    reranker: Reranker | None = None,
    selection_embedder: Embedder | None = None,
    limits: ServiceLimits | None = None,
) -> Retriever:
    """Make a retriever over the collection that the settings name.

    Nothing is read or asked before the first query. Queries share one connection; the embedded
    store is released after STORE_IDLE_S without a query, and before a fork. With a server or an
    embedding service a forked process opens its own: two must not share one connection.

    Args:
        settings: None reads the environment and `.env`.
        reranker: Orders the best hits again; None keeps the fused order.
        selection_embedder: Helps selected-text mode tell related questions; None compares words.
        limits: Bounds of time and failure. None gives a query 10 s, or 2 s more than the settings'
            own timeouts, whose errors say more.

    Raises:
        ConfigurationError: A setting is missing or out of its bounds.
        MissingDependencyError: The package of the embedding provider is not installed.
    """
    from rag_pipeline.adapters.connect import connect_catalog, connect_embedder  # noqa: PLC0415  # see module
    from rag_pipeline.adapters.embedders.bm25 import Bm25Encoder  # noqa: PLC0415  # see module
    from rag_pipeline.core.settings import load_settings  # noqa: PLC0415  # see module
    from rag_pipeline.retrieval.protection.limits import Protection  # noqa: PLC0415  # see module
    from rag_pipeline.retrieval.ranking import FusionWeights  # noqa: PLC0415  # see module
    from rag_pipeline.retrieval.retriever import Retriever, RetrieverOptions  # noqa: PLC0415  # see module
    from rag_pipeline.retrieval.store_session import StoreSession  # noqa: PLC0415  # see module

    chosen = settings or load_settings()
    embedder, catalog = connect_embedder(chosen), connect_catalog(chosen)
    space = EmbeddingSpace(embedder.model, FORMAT_VERSION)
    return Retriever(
        embedder,
        Bm25Encoder(),
        StoreSession(
            catalog,
            space,
            chosen.store_idle_s,
            is_exclusive=catalog.is_exclusive,
            recheck_s=0.0 if catalog.is_exclusive else _SERVER_RECHECK_S,
        ),
        options=RetrieverOptions(
            dedup_threshold=chosen.dedup_threshold,
            weights=FusionWeights(
                chosen.semantic_weight,
                1.0 - chosen.semantic_weight,
                chosen.document_weight,
                chosen.window_weight,
            ),
            selected_text_threshold=chosen.selected_text_threshold,
            site=chosen.site,
        ),
        reranker=reranker,
        selection_embedder=selection_embedder,
        protection=Protection(
            limits or _derive_limits(chosen, catalog.timeout_s), log_questions=chosen.log_questions
        ),
    )


def _derive_limits(settings: Settings, waits_s: float) -> ServiceLimits:
    from rag_pipeline.core.settings import EmbeddingProvider  # noqa: PLC0415  # see module
    from rag_pipeline.retrieval.protection.limits import ServiceLimits  # noqa: PLC0415  # see module

    if settings.provider is not EmbeddingProvider.LOCAL:
        waits_s += settings.embedding_timeout_s
    plan = ServiceLimits()
    longer_s = max(0.0, waits_s + _OWN_TIMEOUTS_FIRST_S - plan.query_s)
    return replace(plan, query_s=plan.query_s + longer_s, batch_s=plan.batch_s + longer_s)
