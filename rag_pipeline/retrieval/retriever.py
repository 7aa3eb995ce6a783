"""From queries to results: embed, search, fuse, choose, present."""

from __future__ import annotations

import asyncio
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from rag_pipeline.core.closing import Closing
from rag_pipeline.core.errors import CollectionMissingError, EmbeddingDimensionError
from rag_pipeline.core.models import SiteSettings
from rag_pipeline.core.payload import read_metadata
from rag_pipeline.core.protocols.stores import Channel, ChannelQuery
from rag_pipeline.retrieval.candidates import DEPTH, PlaceCache, gather_candidates
from rag_pipeline.retrieval.choosing import choose_hits
from rag_pipeline.retrieval.evidence import BookTerms, compare_words, weigh_terms
from rag_pipeline.retrieval.hits import build_hits, rerank_hits, widen_hits
from rag_pipeline.retrieval.models import Mode, Query, RetrievalResult, check_queries
from rag_pipeline.retrieval.protection.limits import Protection
from rag_pipeline.retrieval.ranking import FusionWeights
from rag_pipeline.retrieval.search import prepare_searches
from rag_pipeline.retrieval.selected_text import retrieve_selected

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rag_pipeline.core.protocols.embedding import Embedder, Reranker, SparseEncoder
    from rag_pipeline.core.protocols.stores import PointStore
    from rag_pipeline.retrieval.protection.logs import Operation
    from rag_pipeline.retrieval.search import Search
    from rag_pipeline.retrieval.store_session import StoreSession

_Read = TypeVar("_Read")

_RERANK_FACTOR: Final = 4  # hits offered to a reranker for each one asked for


@dataclass(frozen=True, slots=True)
class RetrieverOptions:
    """The thresholds and weights that a user may tune.

    Attributes:
        dedup_threshold: Two chunks whose vectors have a higher cosine say the same.
        selected_text_threshold: A question with a lower relatedness is not about the selection.
        weights: Weights of the fusion.
        site: How addresses are formed, for citing selections.
    """

    dedup_threshold: float = 0.95
    selected_text_threshold: float = 0.38
    weights: FusionWeights = FusionWeights()  # noqa: RUF009  # frozen
    site: SiteSettings = SiteSettings()  # noqa: RUF009  # frozen


class Retriever(Closing):
    """Answers queries with ranked, cited passages; safe to share among threads.

    Args:
        embedder: Embeds questions; the model that the collection was built with.
        encoder: Turns questions into terms; the encoder that the collection was built with.
        session: The collection.
        options: Thresholds and weights.
        reranker: Orders the best hits again; None keeps the fused order.
        selection_embedder: Helps to tell if a question is about a selection; None compares only
            words.
        protection: Time limits, circuit breakers and log; None for the default limits.
    """

    def __init__(
        self,
        embedder: Embedder,
        encoder: SparseEncoder,
        session: StoreSession,
        *,
        options: RetrieverOptions | None = None,
        reranker: Reranker | None = None,
        selection_embedder: Embedder | None = None,
        protection: Protection | None = None,
    ) -> None:
        self._embedder = embedder
        self._encoder = encoder
        self._session = session
        self._options = options or RetrieverOptions()
        self._places = PlaceCache(lasting=session.is_exclusive)
        self._terms = BookTerms(encoder, lasting=session.is_exclusive)
        self._reranker = reranker
        self._selection_embedder = selection_embedder
        self._protection = protection or Protection()

    @property
    def session(self) -> StoreSession:
        """The collection, for reading it in other ways than by a question."""
        return self._session

    @property
    def protection(self) -> Protection:
        """The limits, breakers and log that this retriever's calls share."""
        return self._protection

    def protected_by(self, protection: Protection) -> Retriever:
        """Return a retriever over the same collection with other limits, breakers and log."""
        other = copy(self)
        other._protection = protection  # noqa: SLF001  # its own copy
        return other

    def retrieve(self, query: Query) -> RetrievalResult:
        """Find passages for one query; see `retrieve_many`."""
        return self.retrieve_many([query])[0]

    def retrieve_many(self, queries: Sequence[Query]) -> list[RetrievalResult]:
        """Find passages for several queries, in order, sharing the round trips to the store.

        Queries in selected-text mode touch neither the store nor the search's embedder.

        Raises:
            QueryError: A query is not usable (also a ValueError); nothing was searched.
            EmbeddingError: A question could not be embedded, or not in time.
            StoreError: The collection is missing, empty, of another model, or not reached in time.
            PayloadError: A stored point is damaged.
        """
        questions = [getattr(query, "question", "") for query in queries]
        with self._protection.watch("retrieve", questions) as operation:
            return self.find(queries, operation)

    async def aretrieve(self, query: Query) -> RetrievalResult:
        """Run `retrieve` in a thread, so that the event loop goes on."""
        return await asyncio.to_thread(self.retrieve, query)

    async def aretrieve_many(self, queries: Sequence[Query]) -> list[RetrievalResult]:
        """Run `retrieve_many` in a thread, so that the event loop goes on."""
        return await asyncio.to_thread(self.retrieve_many, queries)

    def find(self, queries: Sequence[Query], operation: Operation) -> list[RetrievalResult]:
        """Find passages as a part of an operation, within its time limit; raises as
        `retrieve_many`.
        """
        check_queries(queries)
        normal = [query for query in queries if query.mode == Mode.NORMAL]
        results: list[RetrievalResult] = []
        if normal:
            searches = self._protection.embed(operation, lambda: self._prepare(normal))
            results = self._protection.search(operation, lambda: self._search(searches))
        found = iter(results)
        results = [
            next(found) if query.mode == Mode.NORMAL else self._retrieve_selected(query, operation)
            for query in queries
        ]
        operation.result_count = sum(len(result.chunks) for result in results)
        return results

    def read(self, action: Callable[[PointStore], _Read]) -> _Read:
        """Run an action that reads the collection, within the time limit of a query.

        Raises:
            StoreError: The collection is missing, of another model, or not reached in time.
        """

        def use() -> _Read:
            with self._session.use() as index:
                return action(index)

        return self._protection.read_store(use)

    def probe(self) -> None:
        """Check that the collection can be searched: model, dimension, and one point's payload.

        Raises:
            StoreError: The collection is missing, empty, of another model, or not reached in time.
            EmbeddingDimensionError: Questions and points have vectors of different length.
            PayloadError: The point does not keep the payload contract.
        """
        self.read(self._probe)

    def close(self) -> None:
        """Release the store; a later query opens it again."""
        self._session.close()

    def _prepare(self, queries: Sequence[Query]) -> list[Search]:
        choices = _RERANK_FACTOR if self._reranker else 1
        return prepare_searches(self._embedder, self._encoder, queries, choices)

    def _search(self, searches: Sequence[Search]) -> list[RetrievalResult]:
        with self._session.use() as index:
            parts = [part for search in searches for part in search.parts]
            gather_candidates(index, [*searches, *parts], DEPTH, self._places)
            if not any(search.candidates for search in searches) and index.count() == 0:
                raise CollectionMissingError(index.collection_id, "the store in use")
            weigh_terms(index, self._terms, searches, self._embedder.model.fingerprint)
            options = self._options
            choose_hits(index, searches, self._places, options.weights, options.dedup_threshold)
            chosen = {hit.candidate.place.point_id for search in searches for hit in search.chosen}
            points = {point.point_id: point for point in index.fetch(sorted(chosen))}
            for search in searches:
                query, search.hits = search.query, build_hits(search, points)
                if self._reranker is not None and search.hits:
                    hits = rerank_hits(self._reranker, query.question, search.hits)
                    search.hits = hits[: query.result_count]
                if query.expand_to_section_tokens is not None:
                    search.hits = widen_hits(index, search.hits, query.expand_to_section_tokens)
            compare_words(index, searches)
        return [
            RetrievalResult(
                chunks=tuple(search.hits),
                query=search.query,
                mode=Mode.NORMAL,
                total_candidates=len(search.candidates),
                evidence=search.evidence and replace(search.evidence, words=tuple(search.words)),
            )
            for search in searches
        ]

    def _probe(self, index: PointStore) -> None:
        model = self._embedder.model
        if index.space.model.dim != model.dim:
            found = f"{index.space.model.dim} dimensions in the store"
            raise EmbeddingDimensionError(model.model, f"{model.dim} dimensions", found)
        unit = np.zeros(model.dim, dtype=np.float32)
        unit[0] = 1.0
        found_ids = index.search_many([ChannelQuery(Channel.DENSE, unit, 1)])[0]
        points = index.fetch([point_id for point_id, _ in found_ids])
        if not points:
            raise CollectionMissingError(index.collection_id, "the store in use")
        read_metadata(points[0].payload)

    def _retrieve_selected(self, query: Query, operation: Operation) -> RetrievalResult:
        threshold, site = self._options.selected_text_threshold, self._options.site
        embedder = self._selection_embedder
        if embedder is None:
            return retrieve_selected(query, threshold, site)
        return self._protection.embed(
            operation, lambda: retrieve_selected(query, threshold, site, embedder)
        )
