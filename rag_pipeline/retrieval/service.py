"""A search service for web backends, with results that can be written as JSON.

The names of methods and result fields come from the plan for validating retrieval (ADR 25).
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypedDict

from rag_pipeline.core.errors import QueryError, ResultInvalidError, ValidationFailedError
from rag_pipeline.core.models import Closing
from rag_pipeline.core.settings import Settings, load_settings
from rag_pipeline.retrieval.hits import check_results
from rag_pipeline.retrieval.limits import MAX_BATCH, Protection, ServiceLimits
from rag_pipeline.retrieval.logs import configure_logging
from rag_pipeline.retrieval.opening import open_retriever
from rag_pipeline.retrieval.queries import DEFAULT_TOP_K, Query, QueryFilters

if TYPE_CHECKING:
    from rag_pipeline.core.protocols import PointStore
    from rag_pipeline.retrieval.models import ScoredChunk
    from rag_pipeline.retrieval.retriever import Retriever

_STATS_FRESH_S: Final = 30.0


class ResultMetadata(TypedDict):
    """The page, section and position of a search result in the book."""

    url: str
    page_title: str
    chunk_index: int
    section: str
    doc_path: str
    module: str
    chapter: str
    content_type: str


class SearchResult(TypedDict):
    """One search result with its text, score and source.

    `vector_id` is the chunk's id, 16 hexadecimal digits. `similarity_score` is 0 to 1 and never
    higher than the score of the previous result.
    """

    vector_id: str
    similarity_score: float
    text: str
    metadata: ResultMetadata


class SearchResponse(TypedDict):
    """The results of one query, best first, with their timings.

    `timings_ms` contains the milliseconds of the steps embed, search and validate. In a batch,
    `latency_ms` and `timings_ms` are the times of the whole batch.
    """

    query: str
    results: list[SearchResult]
    total_results: int
    latency_ms: float
    timings_ms: dict[str, float]
    status: Literal["success"]


class ValidationReport(TypedDict):
    """The outcome of checking the results of a query against every rule.

    `checks` maps the name of each rule to the problem that was found, or to an empty string.
    """

    query: str
    passed: bool
    checks: dict[str, str]
    total_results: int
    latency_ms: float


class CollectionStats(TypedDict):
    """The size of the current collection and the memory of this process.

    `total_vectors` and `vector_count` are both the number of points. `memory_usage` is the peak
    resident memory, such as `512.0 MB`.
    """

    total_vectors: int
    vector_dimension: int
    collection_name: str
    vector_count: int
    memory_usage: str


class RetrievalService(Closing):
    """A search service over one collection, with time limits, circuit breakers and logs.

    Several threads can share a service. The constructor checks that the collection can be searched.

    Args:
        settings: None reads the environment and `.env`.
        retriever: None opens a retriever over the collection that the settings name.
        limits: Time limits and circuit breaker thresholds; None for the defaults.
        log_to_files: True writes log lines to the console and to `logs/` in the book's state
            folder. False leaves logging to the configuration of the application.

    Attributes:
        retriever: A retriever with the limits, circuit breakers and log of this service. Pass it to
            `answer`, so that answers share them.

    Raises:
        StoreError: The collection cannot be searched; the message says why.
        EmbeddingDimensionError: The vectors of questions and points differ in length.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        retriever: Retriever | None = None,
        limits: ServiceLimits | None = None,
        log_to_files: bool = True,
    ) -> None:
        chosen = settings or load_settings()
        self._protection = Protection(limits)
        opened = retriever or open_retriever(chosen)
        self.retriever = opened.protected_by(self._protection)
        self._collection_name = chosen.qdrant_collection
        if log_to_files:
            configure_logging(chosen.state_dir / "logs")
        self._stats: tuple[float, CollectionStats] | None = None
        self.check_collection()

    def search(
        self, query: str, k: int = DEFAULT_TOP_K, filters: QueryFilters | None = None
    ) -> SearchResponse:
        """Return the passages that best match a question.

        Args:
            query: The question, 1 to 5,000 characters.
            k: Number of results, 1 to 100; takes precedence over `filters.top_k`.
            filters: Restrictions on the search; None searches the whole book.

        Raises:
            QueryError: The query is invalid: QUERY_EMPTY, QUERY_TOO_LONG or INVALID_K (400).
            EmbeddingError: The question could not be embedded: EMBEDDING_FAILED (500).
            StoreError: The store failed, as in QDRANT_CONNECTION_ERROR (503), QDRANT_TIMEOUT (504).
            ResultInvalidError: A result breaks a rule: INVALID_RESULT (500).
        """
        asked = [Query(query, filters=filters, top_k=k)]
        return self._run("search", asked, self._protection.limits.query_s)[0]

    def batch_search(
        self, queries: Iterable[str], k: int = DEFAULT_TOP_K, filters: QueryFilters | None = None
    ) -> list[SearchResponse]:
        """Return the passages for up to 100 questions, one response for each question in order.

        `k` and `filters` are those of `search`. Any error that `search` raises fails the whole
        batch.
        """
        if isinstance(queries, str) or not isinstance(queries, Iterable):
            raise QueryError(f"a batch must be a list of questions, not {queries!r:.40}")
        asked = [Query(query, filters=filters, top_k=k) for query in queries]
        if len(asked) > MAX_BATCH:
            raise QueryError(f"a batch has at most {MAX_BATCH} queries, not {len(asked)}. Split it")
        return self._run("batch_search", asked, self._protection.limits.batch_s)

    def validate_retrieval(self, query: str, *, strict: bool = False) -> ValidationReport:
        """Run a query twice and check the results against every rule.

        In addition to the rules for results, both runs must return equal results, and at least one.

        Args:
            query: The question, 1 to 5,000 characters.
            strict: True raises an error if a rule is broken; False only reports it.

        Raises:
            ValidationFailedError: A rule is broken and `strict` is True (422).
            RagPipelineError: The search failed, as described for `search`.
        """
        asked = Query(query)
        both_s = 2 * self._protection.limits.query_s
        with self._protection.watch("validate_retrieval", [asked.question], both_s) as operation:
            first = self.retriever.find([asked], operation)[0].chunks
            second = self.retriever.find([asked], operation)[0].chunks
            checks = check_results(first, second)
            checks["not_empty"] = "" if first else "no passage was found"
            failed = tuple(name for name, problem in checks.items() if problem)
            operation.status = "error" if failed else "success"
        if strict and failed:
            raise ValidationFailedError(failed)
        return ValidationReport(
            query=asked.question,
            passed=not failed,
            checks=checks,
            total_results=len(first),
            latency_ms=operation.elapsed_ms,
        )

    def get_stats(self) -> CollectionStats:
        """Return the size of the current collection; the numbers may be up to 30 s old."""
        now, known = time.monotonic(), self._stats
        if known is None or now - known[0] > _STATS_FRESH_S:
            # No lock: the callers of a hung store would wait for each other's timeouts in turn.
            known = (now, self.retriever.read(partial(read_stats, name=self._collection_name)))
            self._stats = known
        return known[1]

    def check_collection(self) -> None:
        """Check that the collection can be searched: its model, dimension and one point's payload.

        Raises:
            StoreError: The collection cannot be searched; the message says why.
            EmbeddingDimensionError: The vectors of questions and points differ in length.
        """
        self.retriever.probe()

    def close(self) -> None:
        """Close the collection; a later call opens it again."""
        self.retriever.close()

    def _run(
        self, operation_name: str, queries: Sequence[Query], limit_s: float
    ) -> list[SearchResponse]:
        questions = [query.question for query in queries]
        with self._protection.watch(operation_name, questions, limit_s) as operation:
            results = self.retriever.find(queries, operation)
            with operation.measure("validate"):
                for result in results:
                    broken = [one for one in check_results(result.chunks).values() if one]
                    if broken:
                        raise ResultInvalidError(
                            f"the search returned an invalid result: {broken[0]}. Run "
                            "`rag-pipeline audit` to check the collection"
                        )
        latency_ms = operation.elapsed_ms
        return [
            SearchResponse(
                query=result.query.question,
                results=[_describe(chunk) for chunk in result.chunks],
                total_results=len(result.chunks),
                latency_ms=latency_ms,
                timings_ms=dict(operation.timings_ms),
                status="success",
            )
            for result in results
        ]


def read_stats(index: PointStore, name: str) -> CollectionStats:
    """Return the size of an open collection with its name, and the memory of this process."""
    count = index.count()
    return CollectionStats(
        total_vectors=count,
        vector_dimension=index.space.model.dim,
        collection_name=name,
        vector_count=count,
        memory_usage=f"{read_peak_mb():.1f} MB",
    )


def read_peak_mb() -> float:
    """Return the highest resident memory of this process so far in MB (10^6 bytes)."""
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts in bytes, others in KiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _describe(chunk: ScoredChunk) -> SearchResult:
    metadata = chunk.metadata
    return SearchResult(
        vector_id=chunk.chunk_id,
        similarity_score=chunk.score,
        text=chunk.text,
        metadata=ResultMetadata(
            url=chunk.citation.url,
            page_title=metadata.title,
            chunk_index=metadata.chunk_index,
            section=chunk.citation.section,
            doc_path=metadata.doc_path,
            module=metadata.module,
            chapter=metadata.chapter,
            content_type=metadata.content_type,
        ),
    )
