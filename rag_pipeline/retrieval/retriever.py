"""Finding passages for a question: embed, search, fuse, choose, cite.

Belongs here: the way of a query through the other modules. Does not belong here: which services are
used (opening), time limits and codes for a web backend (service).
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from rag_pipeline.core.closing import Closing
from rag_pipeline.core.errors import CollectionMissingError, EmbeddingDimensionError
from rag_pipeline.core.ids import ChunkId, to_point_id
from rag_pipeline.core.models import SiteSettings
from rag_pipeline.core.payload import read_metadata
from rag_pipeline.core.protocols.stores import Channel, ChannelQuery
from rag_pipeline.retrieval.candidates import DEPTH, PlaceCache, Pool, Search, gather_candidates
from rag_pipeline.retrieval.evidence import BookTerms, compare_words, gather_evidence
from rag_pipeline.retrieval.filters import build_point_filter
from rag_pipeline.retrieval.hits import (
    Choice,
    NearDuplicates,
    build_hits,
    rerank_hits,
    widen_hits,
)
from rag_pipeline.retrieval.models import Mode, Query, RetrievalResult, check_queries
from rag_pipeline.retrieval.parts import PART_DEPTH, place_parts
from rag_pipeline.retrieval.questions import EmbeddedQuestion, embed_questions
from rag_pipeline.retrieval.ranking import FusionWeights, arrange, find_scale, fuse, select
from rag_pipeline.retrieval.selected_text import retrieve_selected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.protocols.embedding import Embedder, Reranker, SparseEncoder
    from rag_pipeline.core.protocols.stores import VectorIndex
    from rag_pipeline.retrieval.models import Evidence, ScoredChunk
    from rag_pipeline.retrieval.ranking import Ranked
    from rag_pipeline.retrieval.store_session import StoreSession

_RERANK_FACTOR: Final = 4  # hits offered to a reranker for each one asked for
_SPARE: Final = 2  # candidates whose vectors are read at once beyond the hits asked for
_DEEPEN_FACTOR: Final = 4  # how much further the search goes where duplicates left too few hits


@dataclass(frozen=True, slots=True)
class RetrieverOptions:
    """What a user may tune.

    Attributes:
        dedup_threshold: Two chunks whose vectors have a cosine over this say the same.
        selected_text_threshold: Relatedness under which a question is not about the selection.
        weights: Of the fusion.
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
        encoder: Turns questions into terms as the collection's were.
        session: The collection.
        options: Thresholds and weights.
        reranker: Orders the best hits anew; None leaves the fused order.
        selection_embedder: Helps to tell whether a question is about a selection; None decides
            by words alone.
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
    ) -> None:
        self._embedder = embedder
        self._encoder = encoder
        self._session = session
        self._options = options or RetrieverOptions()
        self._places = PlaceCache(lasting=session.is_exclusive)
        self._terms = BookTerms(encoder, lasting=session.is_exclusive)
        self._reranker = reranker
        self._selection_embedder = selection_embedder

    @property
    def session(self) -> StoreSession:
        """The collection, for reading it in other ways than by a question."""
        return self._session

    def retrieve(self, query: Query) -> RetrievalResult:
        """Find passages for one query; see `retrieve_many`."""
        return self.retrieve_many([query])[0]

    def retrieve_many(self, queries: Sequence[Query]) -> list[RetrievalResult]:
        """Find passages for several queries, in order, sharing the round trips to the store.

        Queries in selected-text mode touch neither store nor the search's embedder.

        Raises:
            QueryError: A query is not usable (also a ValueError); nothing was searched.
            EmbeddingError: The question could not be embedded.
            StoreError: The collection is missing, empty, of another model, or not reached.
            PayloadError: A stored point is damaged.
        """
        check_queries(queries)
        searched = [query for query in queries if query.mode == Mode.NORMAL]
        embedded = self.embed_questions([query.question for query in searched])
        found = iter(self.search(searched, embedded))
        return [
            next(found) if query.mode == Mode.NORMAL else self._retrieve_selected(query)
            for query in queries
        ]

    async def aretrieve(self, query: Query) -> RetrievalResult:
        """Do as `retrieve` does, in a thread, so that an event loop goes on."""
        return await asyncio.to_thread(self.retrieve, query)

    async def aretrieve_many(self, queries: Sequence[Query]) -> list[RetrievalResult]:
        """Do as `retrieve_many` does, in a thread, so that an event loop goes on."""
        return await asyncio.to_thread(self.retrieve_many, queries)

    def embed_questions(self, questions: Sequence[str]) -> list[EmbeddedQuestion]:
        """Embed questions and their parts in order, several at a time.

        Raises:
            EmbeddingServiceError: The service failed, retries spent.
            EmbeddingDimensionError: A vector has another length than the model's.
        """
        return embed_questions(self._embedder, questions)

    def search(
        self, queries: Sequence[Query], embedded: Sequence[EmbeddedQuestion]
    ) -> list[RetrievalResult]:
        """Search for checked queries in normal mode, given their questions' embeddings."""
        if not queries:
            return []
        windowed = self._embedder.model.window_words is not None
        searches = [
            Search(
                vectors=question.vectors,
                sparse=self._encoder.encode_query(question.text),
                where=build_point_filter(query.filters),
                windowed=windowed,
            )
            for query, question in zip(queries, embedded, strict=True)
        ]
        part_searches = [
            [
                replace(whole, vectors=vectors, sparse=self._encoder.encode_query(part))
                for part, vectors in question.parts
            ]
            for question, whole in zip(embedded, searches, strict=True)
        ]
        questions = [question.text for question in embedded]
        with self._session.use() as index:
            every = [*searches, *(search for entry in part_searches for search in entry)]
            pools = gather_candidates(index, every, DEPTH, self._places)
            part_pools = iter(pools[len(searches) :])
            part_rankings = [
                [fuse(next(part_pools).candidates, self._options.weights) for _ in entry]
                for entry in part_searches
            ]
            pools = pools[: len(searches)]
            if not any(pool.candidates for pool in pools) and index.count() == 0:
                raise CollectionMissingError(index.collection_id, "the store in use")
            model = self._embedder.model.fingerprint
            filters = [search.where for search in searches]
            evidence = gather_evidence(index, self._terms, questions, filters, model)
            choices = self._choose(index, queries, searches, pools, part_rankings, evidence)
            wanted = {hit.candidate.place.point_id for choice in choices for hit in choice.chosen}
            points = {point.point_id: point for point in index.fetch(sorted(wanted))}
            presented = [
                self._present(index, query, build_hits(question, choice, points))
                for query, question, choice in zip(queries, questions, choices, strict=True)
            ]
            found = [[to_point_id(ChunkId(hit.chunk_id)) for hit in hits] for hits in presented]
            evidence = compare_words(index, embedded, evidence, found)
        return [
            RetrievalResult(
                chunks=hits,
                query=query,
                mode=Mode.NORMAL,
                total_candidates=choice.candidate_count,
                evidence=known,
            )
            for query, hits, choice, known in zip(
                queries, presented, choices, evidence, strict=True
            )
        ]

    def probe(self) -> None:
        """Check that the collection can be searched: model, dimension, and one point's payload.

        Raises:
            StoreError: The collection is missing, empty, of another model, or not reached.
            EmbeddingDimensionError: Questions and points have vectors of different length.
            PayloadError: The point does not keep the payload contract.
        """
        model = self._embedder.model
        with self._session.use() as index:
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

    def close(self) -> None:
        """Let go of the store; a later query opens it again."""
        self._session.close()

    def _choose(
        self,
        index: VectorIndex,
        queries: Sequence[Query],
        searches: Sequence[Search],
        pools: Sequence[Pool],
        part_rankings: Sequence[Sequence[Sequence[Ranked]]],
        evidence: Sequence[Evidence],
    ) -> list[Choice]:
        factor = _RERANK_FACTOR if self._reranker else 1
        counts = [
            max(query.result_count * factor, PART_DEPTH if parts else 0)
            for query, parts in zip(queries, part_rankings, strict=True)
        ]
        term_weights = [math.fsum(term.weight for term in known.terms) for known in evidence]
        rankings = [
            fuse(pool.candidates, self._options.weights, term_weight)
            for pool, term_weight in zip(pools, term_weights, strict=True)
        ]
        question_terms = [frozenset(term.term for term in known.terms) for known in evidence]
        arranged = [
            arrange(ranked, terms) for ranked, terms in zip(rankings, question_terms, strict=True)
        ]
        near = NearDuplicates(index, self._options.dedup_threshold)
        near.load(
            [
                hit.candidate
                for (passages, _), count in zip(arranged, counts, strict=True)
                for hit in passages[: count + _SPARE]
            ]
        )
        choices = []
        for at, (query, search, count, parts) in enumerate(
            zip(queries, searches, counts, part_rankings, strict=True)
        ):
            pool, depth = pools[at], DEPTH
            nearest = max((candidate.semantic for candidate in pool.candidates), default=0.0)
            passages, bare = arranged[at]
            chosen = select(passages, count, near.is_near)
            # Further candidates change the statistics: what was chosen before keeps its place, so
            # that the first hits are the same however many are asked for.
            while len(chosen) < count and not pool.exhausted:
                depth *= _DEEPEN_FACTOR
                pool = gather_candidates(index, [search], depth, self._places)[0]
                ranked = fuse(pool.candidates, self._options.weights, term_weights[at])
                scale = find_scale(chosen, ranked)
                passages, bare = (
                    [replace(hit, score=hit.score * scale) for hit in hits]
                    for hits in arrange(ranked, question_terms[at])
                )
                chosen = select(passages, count, near.is_near, chosen)
            chosen = select(bare, count, near.is_near, chosen)
            if parts:
                chosen = place_parts(chosen, parts, query.result_count * factor)
            choices.append(Choice(tuple(chosen), nearest, len(pool.candidates)))
        return choices

    def _present(
        self, index: VectorIndex, query: Query, hits: list[ScoredChunk]
    ) -> tuple[ScoredChunk, ...]:
        if self._reranker is not None and hits:
            hits = rerank_hits(self._reranker, query.question, hits)[: query.result_count]
        if query.expand_to_section_tokens is not None:
            hits = widen_hits(index, hits, query.expand_to_section_tokens)
        return tuple(hits)

    def _retrieve_selected(self, query: Query) -> RetrievalResult:
        return retrieve_selected(
            query,
            self._options.selected_text_threshold,
            self._options.site,
            self._selection_embedder,
        )
