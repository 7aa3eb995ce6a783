"""Build a retriever from settings.

This is the only module of the folder that uses adapters. It imports them when a retriever is
opened, so that importing the library stays fast.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.vectors import FORMAT_VERSION, EmbeddingSpace

if TYPE_CHECKING:
    from rag_pipeline.core.protocols import Embedder, Reranker
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.retrieval.limits import ServiceLimits
    from rag_pipeline.retrieval.retriever import Retriever

_SERVER_RECHECK_S: Final = 1.0  # asking a server for the current collection costs a round trip
_OWN_TIMEOUTS_FIRST_S: Final = 2.0  # added so that the settings' own timeouts end first


def open_retriever(
    settings: Settings | None = None,
    *,
    reranker: Reranker | None = None,
    selection_embedder: Embedder | None = None,
    limits: ServiceLimits | None = None,
) -> Retriever:
    """Return a retriever over the collection that the settings name.

    The store and the embedding service are first used by the first query. Queries share one
    connection. The embedded store is released after STORE_IDLE_S seconds without a query, when
    another process waits for it, and before the process forks. With a Qdrant server or an embedding
    service, each forked process must open its own retriever, because two processes must not share
    one connection.

    Args:
        settings: If None, they are read from the environment and `.env`.
        reranker: Reorders the best hits. If None, the fused order is kept.
        selection_embedder: Compares questions with selections by meaning in selected-text mode.
            If None, it is the local textbook model, whichever provider embeds the book.
        limits: Time limits and circuit breaker thresholds. None gives each query 10 s, or 2 s more
            than the timeouts in the settings if that is longer. Those timeouts then end first,
            because their errors are more specific.

    Raises:
        ConfigurationError: A setting is missing or invalid, or a site setting is not the one that
            the links of the collection were built with.
        MissingDependencyError: The package of the embedding provider is not installed.
    """
    from rag_pipeline.adapters.connect import (  # noqa: PLC0415  # see module
        choose_site,
        connect_catalog,
        connect_embedder,
        connect_selection_embedder,
        read_running_ingestion,
    )
    from rag_pipeline.adapters.embedders.bm25 import Bm25Encoder  # noqa: PLC0415  # see module
    from rag_pipeline.core.settings import EmbeddingProvider, load_settings  # noqa: PLC0415  # see module
    from rag_pipeline.core.text.terms import load_everyday_words  # noqa: PLC0415  # see module
    from rag_pipeline.retrieval.limits import Protection, ServiceLimits  # noqa: PLC0415  # see module
    from rag_pipeline.retrieval.ranking import FusionWeights  # noqa: PLC0415  # see module
    from rag_pipeline.retrieval.retriever import Retriever, RetrieverOptions  # noqa: PLC0415  # see module
    from rag_pipeline.retrieval.store_session import StoreSession  # noqa: PLC0415  # see module

    chosen = settings or load_settings()
    catalog = connect_catalog(chosen)
    embedder = connect_embedder(chosen, catalog)
    space = EmbeddingSpace(embedder.model, FORMAT_VERSION)
    if limits is None:
        limits, waits_s = ServiceLimits(), catalog.timeout_s
        if embedder.model.provider != EmbeddingProvider.LOCAL:
            waits_s += chosen.embedding_timeout_s
        longer_s = max(0.0, waits_s + _OWN_TIMEOUTS_FIRST_S - limits.query_s)
        query_s, batch_s = limits.query_s + longer_s, limits.batch_s + longer_s
        limits = replace(limits, query_s=query_s, batch_s=batch_s)
    return Retriever(
        embedder,
        Bm25Encoder(),
        StoreSession(
            catalog,
            space,
            chosen.store_idle_s,
            is_exclusive=catalog.is_exclusive,
            recheck_s=0.0 if catalog.is_exclusive else _SERVER_RECHECK_S,
            find_running=lambda: read_running_ingestion(chosen),
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
            sources=chosen.sources or (),
            site=choose_site(chosen, catalog),
            load_everyday_words=load_everyday_words,
        ),
        reranker=reranker,
        selection_embedder=selection_embedder or connect_selection_embedder(),
        protection=Protection(limits),
    )
