"""Finding passages for a question: embed, search, fuse, choose, cite.

Belongs here: the way of a query through the other modules. Does not belong here: which services are
used (opening), time limits and codes for a web backend (service).
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import CollectionMissingError, EmbeddingDimensionError
from rag_pipeline.core.models import SiteSettings
from rag_pipeline.core.payload import read_metadata
from rag_pipeline.core.terms import extract_terms
from rag_pipeline.retrieval.candidates import DEPTH, Pool, Search, gather_candidates
from rag_pipeline.retrieval.citations import build_citation
from rag_pipeline.retrieval.evidence import gather_evidence
from rag_pipeline.retrieval.expansion import expand, read_sections
from rag_pipeline.retrieval.filters import build_point_filter
from rag_pipeline.retrieval.models import ChannelScores, Mode, Query, RetrievalResult, ScoredChunk
from rag_pipeline.retrieval.ranking import FusionWeights, Ranked, fuse, scale_scores, select
from rag_pipeline.retrieval.selected_text import retrieve_selected

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.models import FloatVector
    from rag_pipeline.core.ports import Embedder, Reranker, SparseEncoder, VectorIndex
    from rag_pipeline.retrieval.ranking import Candidate
    from rag_pipeline.retrieval.store_session import StoreSession

_PARALLEL_EMBEDDINGS: Final = 8  # as many requests as a service adapter has in flight
_RERANK_FACTOR: Final = 4  # hits offered to a reranker for each one asked for


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
    selected_text_threshold: float = 0.34
    weights: FusionWeights = FusionWeights()  # noqa: RUF009  # frozen
    site: SiteSettings = SiteSettings()  # noqa: RUF009  # frozen


class Retriever:
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
        for query in queries:
            query.check()
        searched = [query for query in queries if query.mode == Mode.NORMAL]
        vectors = self.embed_questions([query.question for query in searched])
        found = iter(self.search(searched, vectors))
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

    def embed_questions(self, questions: Sequence[str]) -> list[FloatVector]:
        """Embed questions in order, several at a time.

        Returns:
            A unit vector of the model's dimension for each question.

        Raises:
            EmbeddingServiceError: The service failed, retries spent.
            EmbeddingDimensionError: A vector has another length than the model's.
        """
        texts = [_clean(question) for question in questions]
        if len(texts) <= 1:
            vectors = [self._embedder.embed_query(text) for text in texts]
        else:
            with ThreadPoolExecutor(min(_PARALLEL_EMBEDDINGS, len(texts))) as pool:
                vectors = list(pool.map(self._embedder.embed_query, texts))
        model = self._embedder.model
        for vector in vectors:
            if vector.shape != (model.dim,):
                raise EmbeddingDimensionError(
                    model.model, f"{model.dim} dimensions", f"shape {vector.shape}"
                )
        return vectors

    def search(
        self, queries: Sequence[Query], vectors: Sequence[FloatVector]
    ) -> list[RetrievalResult]:
        """Search for checked queries in normal mode, given their questions' embeddings."""
        if not queries:
            return []
        windowed = self._embedder.model.window_tokens is not None
        searches = [
            Search(
                dense=vector,
                sparse=self._encoder.encode_query(_clean(query.question)),
                where=build_point_filter(query.filters),
                windowed=windowed,
            )
            for query, vector in zip(queries, vectors, strict=True)
        ]
        with self._session.use() as index:
            pools = gather_candidates(index, searches, DEPTH)
            if not any(pool.candidates for pool in pools) and index.count() == 0:
                raise CollectionMissingError("in use", "the store")
            questions = [_clean(query.question) for query in queries]
            model = self._embedder.model.fingerprint
            evidence = gather_evidence(index, self._encoder, questions, model)
            return [
                replace(self._finish(index, query, search, pool), evidence=known)
                for query, search, pool, known in zip(
                    queries, searches, pools, evidence, strict=True
                )
            ]

    def close(self) -> None:
        """Let go of the store; a later query opens it again."""
        self._session.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def _finish(
        self, index: VectorIndex, query: Query, search: Search, pool: Pool
    ) -> RetrievalResult:
        wanted = query.result_count * (_RERANK_FACTOR if self._reranker else 1)
        depth = DEPTH
        while True:
            ranked = fuse(pool.candidates, self._options.weights)
            near = _NearDuplicates(index, ranked, wanted, self._options.dedup_threshold)
            chosen = select(ranked, wanted, near)
            if len(chosen) == wanted or pool.exhausted:
                break
            depth *= 4
            pool = gather_candidates(index, [search], depth)[0]
        nearest = max((candidate.semantic for candidate in pool.candidates), default=0.0)
        hits = _build_hits(query, pool, chosen, scale_scores(chosen, nearest))
        if self._reranker is not None:
            hits = _rerank(self._reranker, query.question, hits)[: query.result_count]
        if query.expand_to_section_tokens is not None:
            hits = _widen(index, hits, query.expand_to_section_tokens)
        return RetrievalResult(tuple(hits), query, Mode.NORMAL, len(pool.candidates))

    def _retrieve_selected(self, query: Query) -> RetrievalResult:
        return retrieve_selected(
            query,
            self._options.selected_text_threshold,
            self._options.site,
            self._selection_embedder,
        )


class _NearDuplicates:
    """Compares candidates by their dense vectors, read from the store in blocks when needed."""

    def __init__(
        self, index: VectorIndex, ranked: Sequence[Ranked], count: int, threshold: float
    ) -> None:
        self._index = index
        self._order = [hit.candidate.point_id for hit in ranked]
        self._place = {point_id: at for at, point_id in enumerate(self._order)}
        self._block = 2 * count
        self._threshold = threshold
        self._vectors: dict[PointId, FloatVector] = {}

    def __call__(self, one: Candidate, other: Candidate) -> bool:
        left, right = self._vector(one), self._vector(other)
        if left is None or right is None:  # deleted since it was found
            return False
        return float(left @ right) > self._threshold

    def _vector(self, candidate: Candidate) -> FloatVector | None:
        point_id = candidate.point_id
        if point_id not in self._vectors:
            at = self._place[point_id]
            block = self._order[at : at + self._block]
            for point in self._index.fetch(block, with_vectors=True):
                if point.vectors is not None:
                    self._vectors[point.point_id] = point.vectors.dense
        return self._vectors.get(point_id)


def _build_hits(
    query: Query, pool: Pool, chosen: Sequence[Ranked], scores: Sequence[float]
) -> list[ScoredChunk]:
    terms = set(extract_terms(query.question))
    hits = []
    for ranked, score in zip(chosen, scores, strict=True):
        candidate = ranked.candidate
        payload = pool.points[candidate.point_id].payload
        metadata, text = read_metadata(payload), str(payload["text"])
        held = set(extract_terms(" ".join((*metadata.heading_breadcrumb, text))))
        channels = ChannelScores(
            dense=candidate.dense,
            windows=candidate.windows,
            bm25=candidate.bm25,
            lexical=len(terms & held) / len(terms) if terms else 0.0,
            fused=ranked.score,
        )
        citation = build_citation(metadata)
        hits.append(ScoredChunk(metadata.chunk_id, text, score, metadata, citation, channels))
    return hits


def _rerank(reranker: Reranker, question: str, hits: Sequence[ScoredChunk]) -> list[ScoredChunk]:
    scores = reranker.rerank(question, [hit.text for hit in hits])
    order = sorted(range(len(hits)), key=lambda at: (-scores[at], at))
    return [replace(hits[at], score=min(1.0, max(0.0, scores[at]))) for at in order]


def _widen(index: VectorIndex, hits: Sequence[ScoredChunk], budget: int) -> list[ScoredChunk]:
    sections = read_sections(index, [hit.metadata.doc_path for hit in hits])
    return [
        replace(hit, expanded_text=expand(hit.metadata, hit.text, sections, budget)) for hit in hits
    ]


def _clean(question: str) -> str:
    """The question as models take it: trimmed, and without halves of surrogate pairs."""
    return question.strip().encode("utf-8", "replace").decode("utf-8")
