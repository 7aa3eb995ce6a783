"""The retriever: runs the stages that turn queries into ranked, cited passages.

The stages are embedding, searching, fusing, choosing and presenting.
"""

from __future__ import annotations

import asyncio
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from rag_pipeline.core.errors import (
    CollectionMissingError,
    EmbeddingDimensionError,
    EmbeddingError,
    StoreError,
)
from rag_pipeline.core.models import Closing, SiteSettings
from rag_pipeline.core.payload import read_metadata
from rag_pipeline.core.protocols import ALL_POINTS, Channel, ChannelQuery, PointFilter
from rag_pipeline.core.sources import DEFAULT_EDITION, Edition, Source
from rag_pipeline.retrieval.candidates import DEPTH, find_best, gather_candidates
from rag_pipeline.retrieval.choosing import NearDuplicates, choose_hits
from rag_pipeline.retrieval.evidence import UNRELATED, compare_words, weigh_terms
from rag_pipeline.retrieval.hits import build_hits, rerank_hits, widen_hits
from rag_pipeline.retrieval.limits import Protection
from rag_pipeline.retrieval.models import RetrievalResult, ScoredChunk
from rag_pipeline.retrieval.open_index import EDITION_FIELDS, OpenIndex
from rag_pipeline.retrieval.queries import Mode, Query, check_queries, name_questions
from rag_pipeline.retrieval.ranking import FusionWeights
from rag_pipeline.retrieval.search import Search, prepare_searches
from rag_pipeline.retrieval.selected_text import retrieve_selected
from rag_pipeline.retrieval.spelling import choose_result, correct_queries

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from rag_pipeline.core.protocols import Embedder, PointStore, Reranker, SparseEncoder
    from rag_pipeline.core.text.abbreviations import Abbreviation
    from rag_pipeline.retrieval.logs import Operation
    from rag_pipeline.retrieval.store_session import StoreSession


_NAMING: Final = {"version": "of version {0}", "locale": "in {1}"}


def limit_to_corpora(
    opened: OpenIndex, searches: Sequence[Search], site: SiteSettings
) -> list[Search]:
    """Return the searches with the versions and languages to which they are limited."""
    marks = opened.find_marks()
    if not marks:
        return list(searches)
    limited = []
    for search in searches:
        url = search.query.source_url
        read_at = DEFAULT_EDITION if url is None else opened.find_edition(site, url)
        corpus, notice = choose_corpus(search, marks, read_at)
        fields = dict(search.where.fields) | dict(corpus.fields)
        where = PointFilter(tuple(fields.items()), without=corpus.without)
        parts = tuple(replace(part, where=where, corpus=corpus) for part in search.parts)
        limited.append(replace(search, where=where, corpus=corpus, notice=notice, parts=parts))
    return limited


def choose_corpus(
    search: Search, marks: frozenset[str], read_at: Edition
) -> tuple[PointFilter, str | None]:
    """Return the filter by version and language for a question, and a notice for the reader.

    Filters by document decide alone. Filters by version or language come next, then the page on
    which the question was asked, and then the latest version in the default language.

    Args:
        search: The question with its filters.
        marks: Those of `is_latest` and `is_default_locale` that points of the collection have.
        read_at: The version and language of the page on which the question was asked.
    """
    filters = search.query.filters
    if filters is not None and filters.doc_paths:
        return ALL_POINTS, None
    given = dict(search.where.fields)
    is_free = filters is None or not (filters.versions or filters.locales)
    fields: list[tuple[str, tuple[str, ...]]] = []
    without: list[str] = []
    named: list[str] = []
    for name, mark in EDITION_FIELDS.items():
        value = getattr(read_at, name)
        if name in given:
            fields.append((name, given[name]))
        elif filters is not None and getattr(filters, f"{name}s"):
            continue  # all are allowed
        elif is_free and value and not getattr(read_at, mark):
            fields.append((name, (value,)))
            named.append(_NAMING[name].format(read_at.version_label or value, value))
        elif mark in marks:
            without.append(mark)
    notice = f"Only the pages {' '.join(named)} were searched, because you asked on one of them."
    return PointFilter(tuple(fields), without=tuple(without)), notice if named else None


@dataclass(frozen=True, slots=True)
class RetrieverOptions:
    """The thresholds, weights and word list of retrieval.

    Attributes:
        dedup_threshold: Two chunks whose vectors have a higher cosine are near-duplicates, and
            only the better chunk is returned.
        selected_text_threshold: The least share of a question's words, 0 to 1, in a selection that
            answers it. A similar meaning can replace the words.
        weights: The weights of the fused score.
        site: The site settings from which URLs of selections are built.
        sources: The sources of the site, which name the version and language of selections.
        load_everyday_words: Returns words, in lower case, that are not misspelled although the book
            lacks them. None corrects no question.
    """

    dedup_threshold: float = 0.95
    selected_text_threshold: float = 0.38
    weights: FusionWeights = FusionWeights()  # noqa: RUF009  # frozen
    site: SiteSettings = SiteSettings()  # noqa: RUF009  # frozen
    sources: Sequence[Source] = ()
    load_everyday_words: Callable[[], AbstractSet[str]] | None = None


_Read = TypeVar("_Read")

_RERANK_FACTOR: Final = 4  # hits given to a reranker for each result that is asked for


class Retriever(Closing):
    """A search over one collection that returns ranked, cited passages.

    Several threads can share a retriever.

    Args:
        embedder: Embeds questions; must be the model that the collection was built with.
        encoder: Turns questions into BM25 terms; must be the encoder that the collection was built
            with.
        session: Opens the collection and shares it between queries.
        options: Thresholds and weights; None for the defaults.
        reranker: Reorders the best hits. If None, the fused order is kept.
        selection_embedder: Compares questions with selections by meaning. It must be the local
            textbook model. If None, only their words are compared.
        protection: Time limits, circuit breakers and log; None for the default limits.

    Attributes:
        session: Opens the collection, for direct access to the store.
        options: The thresholds and weights.
        protection: The time limits, circuit breakers and log that all calls share.
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
        self.session = session
        self.options = options or RetrieverOptions()
        self.protection = protection or Protection()
        self._opened: OpenIndex | None = None
        self._unrelated: Sequence[Search] = ()
        self._reranker = reranker
        self._selection_embedder = selection_embedder

    def protected_by(self, protection: Protection) -> Retriever:
        """Return a copy of this retriever that uses the given time limits, breakers and log."""
        other = copy(self)
        other.protection = protection
        return other

    def retrieve(self, query: Query) -> RetrievalResult:
        """Return the passages for one query, best first; raises the errors of `retrieve_many`."""
        return self.retrieve_many([query])[0]

    def retrieve_many(self, queries: Sequence[Query]) -> list[RetrievalResult]:
        """Return the passages for several queries, one result for each query in order.

        The queries share the round trips to the store. Queries in selected-text mode use neither
        the store nor the embedder of the collection.

        Raises:
            QueryError: A query is invalid, so nothing was searched. It is also a ValueError.
            EmbeddingError: Embedding a question failed or exceeded the time limit.
            StoreError: The collection is missing, empty or built with another model, or the store
                failed or exceeded the time limit.
            PayloadError: A stored point has a missing or invalid payload field.
            ResultInvalidError: The reranker did not return one finite score for each passage.
        """
        questions = name_questions(queries)
        with self.protection.watch("retrieve", questions) as operation:
            return self.find(queries, operation)

    async def aretrieve(self, query: Query) -> RetrievalResult:
        """Run `retrieve` in another thread and return its result; the event loop continues."""
        return await asyncio.to_thread(self.retrieve, query)

    async def aretrieve_many(self, queries: Sequence[Query]) -> list[RetrievalResult]:
        """Run `retrieve_many` in another thread and return its result; the event loop continues."""
        return await asyncio.to_thread(self.retrieve_many, queries)

    def find(self, queries: Sequence[Query], operation: Operation) -> list[RetrievalResult]:
        """Return the passages for several queries, within the time limit of a running operation.

        Raises the same errors as `retrieve_many`. That method begins an operation of its own, which
        is logged; this one adds to the operation of the caller.

        Args:
            queries: The queries; they are checked before anything is searched.
            operation: The running call that is logged. Its timings and result count are set.
        """
        check_queries(queries, self.options.site)
        normal = [query for query in queries if query.mode == Mode.NORMAL]
        found = iter(self._find_corrected(normal, operation) if normal else ())
        results = [
            next(found) if query.mode == Mode.NORMAL else self._retrieve_selected(query, operation)
            for query in queries
        ]
        operation.result_count = sum(len(result.chunks) for result in results)
        return results

    def read(self, action: Callable[[PointStore], _Read]) -> _Read:
        """Run an action on the open collection and return its result.

        The time limit of one query applies.

        Args:
            action: A function that gets the open collection.

        Raises:
            StoreError: The collection is missing or built with another model, or the store failed
                or exceeded the time limit.
        """

        def use() -> _Read:
            with self.session.use() as index:
                return action(index)

        return self.protection.read_store(use)

    def read_index(self, action: Callable[[OpenIndex], _Read]) -> _Read:
        """Do the same as `read` with an action that gets the collection and what is known of it."""
        return self.read(lambda store: action(self._open(store)))

    def probe(self) -> None:
        """Check that the collection can be searched: its model, dimension and one point's payload.

        Raises:
            StoreError: The collection is missing, empty or built with another model, or the store
                failed or exceeded the time limit.
            EmbeddingDimensionError: The vectors of questions and points differ in length.
            PayloadError: The point that was read has a missing or invalid payload field.
        """
        self.read(self._probe)

    def close(self) -> None:
        """Close the collection; a later query opens it again."""
        self.session.close()

    def _find_all(self, queries: Sequence[Query], operation: Operation) -> list[RetrievalResult]:
        """Search for the queries, and once more with the long forms of abbreviations if any.

        The store is used only after the questions were embedded.
        """
        searches = self.protection.embed(operation, lambda: self._prepare(queries))
        found, known = self.protection.search(operation, lambda: self._search(searches))
        if any(known):
            spelled = self.protection.embed(operation, lambda: self._prepare(queries, known))
            found, _ = self.protection.search(
                operation, lambda: self._search(spelled, is_spelled=True)
            )
        return found

    def _prepare(
        self,
        queries: Sequence[Query],
        abbreviations: Sequence[tuple[Abbreviation, ...]] | None = None,
    ) -> list[Search]:
        choices = _RERANK_FACTOR if self._reranker else 1
        # A model with windows has a rule measured on its own cosines, or its words are compared.
        if self._embedder.model.window_words is None and not self._unrelated:
            unrelated = [Query(text) for text in UNRELATED]
            self._unrelated = prepare_searches(self._embedder, self._encoder, unrelated)
        return prepare_searches(self._embedder, self._encoder, queries, choices, abbreviations)

    def _open(self, store: PointStore) -> OpenIndex:
        """Return what is known about an open collection; a new one begins empty."""
        opened = self._opened
        if opened is None or opened.store is not store:
            opened = OpenIndex(store, self._encoder, lasting=self.session.is_exclusive)
            self._opened = opened
        return opened

    def _search(
        self, searches: Sequence[Search], *, is_spelled: bool = False
    ) -> tuple[list[RetrievalResult], list[tuple[Abbreviation, ...]]]:
        """Search the collection.

        Args:
            searches: The embedded questions.
            is_spelled: True if they have the other forms of their abbreviations.

        Returns:
            The results, and no abbreviations. Or no results, if an abbreviation was found of which
            a question lacks a form, and then the abbreviations of each question.
        """
        with self.session.use() as store:
            opened, options = self._open(store), self.options
            searches = limit_to_corpora(opened, searches, options.site)
            questions = [search.query.question for search in searches]
            marks = [] if is_spelled else opened.ask_marks(questions)
            first, marked = find_best(opened, searches, DEPTH, marks)
            known = opened.find_abbreviations(questions, marked)
            if any(known):
                return [], known
            found = gather_candidates(opened, first, options.weights)
            if not any(own.candidates for own in found) and store.count() == 0:
                raise CollectionMissingError(store.collection_id, "the vector store")
            model, unrelated = self._embedder.model, opened.measure_unrelated(self._unrelated)
            evidence = weigh_terms(opened, searches, first.weights, model.fingerprint, unrelated)
            near = NearDuplicates(store, options.dedup_threshold)
            chosen = choose_hits(opened, searches, found, evidence, options.weights, near)
            chunks = opened.find_chunks(
                sorted({hit.candidate.place.point_id for own in chosen for hit in own.hits}),
                near.payloads,
            )
            hits = [
                self._finish(store, search, build_hits(search, own, chunks))
                for search, own in zip(searches, chosen, strict=True)
            ]
            evidence = compare_words(searches, evidence, chosen, hits)
        results = [
            RetrievalResult(
                chunks=tuple(own_hits),
                query=search.query,
                mode=Mode.NORMAL,
                total_candidates=own.candidate_count,
                index_id=store.collection_id,
                notice=search.notice,
                evidence=known_of,
            )
            for search, own, own_hits, known_of in zip(
                searches, chosen, hits, evidence, strict=True
            )
        ]
        return results, []

    def _finish(
        self, store: PointStore, search: Search, hits: list[ScoredChunk]
    ) -> list[ScoredChunk]:
        """Rerank the hits of a search, drop weak hits and expand texts, if that is asked for."""
        query = search.query
        if self._reranker is not None and hits:
            hits = rerank_hits(self._reranker, query.question, hits)[: query.result_count]
        least = query.min_relative_score * max((hit.score for hit in hits), default=0.0)
        hits = [hit for hit in hits if hit.score >= least]
        if query.expand_to_section_tokens is not None:
            hits = widen_hits(store, hits, query.expand_to_section_tokens)
        return hits

    def _find_corrected(
        self, queries: Sequence[Query], operation: Operation
    ) -> list[RetrievalResult]:
        """Search for the queries, and again for those with misspelled words.

        The better result of each counts. If the second search fails, the first results count.
        """
        results = self._find_all(queries, operation)
        load_words = self.options.load_everyday_words
        try:
            other = correct_queries(results, self._encoder, load_words, self.read)
            corrected = self._find_all([*other.values()], operation) if other else []
        except (StoreError, EmbeddingError) as error:
            operation.details["correction"] = error.code
            return results
        for at, found in zip(other, corrected, strict=True):
            results[at] = choose_result(results[at], found)
        return results

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
            raise CollectionMissingError(index.collection_id, "the vector store")
        read_metadata(points[0].payload)

    def _retrieve_selected(self, query: Query, operation: Operation) -> RetrievalResult:
        options, embedder = self.options, self._selection_embedder
        select = partial(
            retrieve_selected,
            query,
            options.selected_text_threshold,
            options.site,
            embedder,
            options.sources,
        )
        return select() if embedder is None else self.protection.compare(operation, select)
