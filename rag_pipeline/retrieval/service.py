"""Retrieval as a web backend wants it: time limits, error codes, a circuit breaker, logs, plain
JSON-ready answers under the names of the validation plan.

Belongs here: what surrounds a search. Does not belong here: how passages are found (retriever).
Retries of services are the adapters': a second round of them here would multiply their waits.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypedDict, TypeVar

from rag_pipeline.core.closing import Closing
from rag_pipeline.core.errors import (
    EmbeddingServiceError,
    EmbeddingTimeoutError,
    QueryError,
    ResultInvalidError,
    StoreTimeoutError,
    StoreUnavailableError,
    ValidationFailedError,
)
from rag_pipeline.core.rules import check_results
from rag_pipeline.core.settings import load_settings
from rag_pipeline.retrieval.breaker import CircuitBreaker
from rag_pipeline.retrieval.filters import DEFAULT_TOP_K, QueryFilters
from rag_pipeline.retrieval.logs import RetrievalLog, configure_logging
from rag_pipeline.retrieval.models import Query, check_queries
from rag_pipeline.retrieval.opening import open_retriever
from rag_pipeline.retrieval.time_limit import run_within

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rag_pipeline.core.settings import Settings
    from rag_pipeline.retrieval.models import RetrievalResult, ScoredChunk
    from rag_pipeline.retrieval.retriever import Retriever

_Result = TypeVar("_Result")

MAX_BATCH: Final = 100
_STATS_FRESH_S: Final = 30.0


class ResultMetadata(TypedDict):
    """Where a result stands."""

    url: str
    page_title: str
    chunk_index: int
    section: str
    doc_path: str
    module: str
    chapter: str
    content_type: str


class SearchResult(TypedDict):
    """One result: `similarity_score` 0 to 1, never higher than that of the result before."""

    vector_id: str
    similarity_score: float
    text: str
    metadata: ResultMetadata


class SearchResponse(TypedDict):
    """Answer to one query; `timings_ms` has embed, search and validate, a batch's for each of its
    queries.
    """

    query: str
    results: list[SearchResult]
    total_results: int
    latency_ms: float
    timings_ms: dict[str, float]
    status: Literal["success"]


class ValidationReport(TypedDict):
    """Which rules the results of a query keep; `checks` maps a rule to what breaks it, else ""."""

    query: str
    passed: bool
    checks: dict[str, str]
    total_results: int
    latency_ms: float


class CollectionStats(TypedDict):
    """The collection in use; `memory_usage` is the peak resident memory of this process."""

    total_vectors: int
    vector_dimension: int
    collection_name: str
    vector_count: int
    memory_usage: str


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """Bounds of time and failure; the defaults are those of the validation plan.

    Attributes:
        query_s: For one query, embedding and search together.
        batch_s: For one batch.
        breaker_failures: Transient failures in a row after which calls fail at once.
        breaker_reset_s: Seconds until the service is tried again.
    """

    query_s: float = 10.0
    batch_s: float = 30.0
    breaker_failures: int = 5
    breaker_reset_s: float = 30.0


class RetrievalService(Closing):
    """Search for a backend; safe to share among threads.

    Args:
        settings: None reads the environment and `.env`.
        retriever: None opens the one that the settings name.
        limits: Bounds of time and failure.
        log_to_files: Write to the console and to `logs/` in the book's state folder; False leaves
            log lines to the process's own configuration.

    Raises:
        StoreError: The collection is missing, empty, of another model, or not reached.
        PayloadError: Its points do not keep the payload contract.
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
        self._limits = limits or ServiceLimits()
        self._retriever = retriever or open_retriever(chosen)
        self._collection_name = chosen.qdrant_collection
        if log_to_files:
            configure_logging(chosen.state_dir / "logs")
        self._log = RetrievalLog(with_questions=chosen.log_questions)
        breaker = (self._limits.breaker_failures, self._limits.breaker_reset_s)
        self._embedding = CircuitBreaker(*breaker, _refuse_embedding)
        self._store = CircuitBreaker(*breaker, _refuse_store)
        self._stats: tuple[float, CollectionStats] | None = None
        self.check_collection()

    def search(
        self, query: str, k: int = DEFAULT_TOP_K, filters: QueryFilters | None = None
    ) -> SearchResponse:
        """Find the passages nearest to a question.

        Args:
            query: 1 to 5,000 characters.
            k: Number of results, 1 to 100; counts before that of `filters`.
            filters: What to search in.

        Raises:
            QueryError: QUERY_EMPTY, QUERY_TOO_LONG, INVALID_K (400).
            EmbeddingError: EMBEDDING_FAILED (500).
            StoreError: QDRANT_CONNECTION_ERROR (503), QDRANT_TIMEOUT (504), and others.
            ResultInvalidError: INVALID_RESULT (500).
        """
        return self._run("search", [Query(query, filters=filters, top_k=k)], self._limits.query_s)[
            0
        ]

    def batch_search(
        self,
        queries: Iterable[str],
        k: int = DEFAULT_TOP_K,
        filters: QueryFilters | None = None,
    ) -> list[SearchResponse]:
        """Find passages for up to 100 questions in order, sharing the round trips; raises as
        `search`, for the whole batch.
        """
        if isinstance(queries, str) or not isinstance(queries, Iterable):
            raise QueryError(f"a batch must be a list of texts, not {queries!r:.40}")
        asked = [Query(query, filters=filters, top_k=k) for query in queries]
        if len(asked) > MAX_BATCH:
            raise QueryError(f"a batch has at most {MAX_BATCH} queries, not {len(asked)}. Split it")
        return self._run("batch_search", asked, self._limits.batch_s)

    def validate_retrieval(self, query: str, *, strict: bool = False) -> ValidationReport:
        """Run a query twice and check its results against every rule.

        Args:
            query: 1 to 5,000 characters.
            strict: Raise where a rule is broken.

        Raises:
            ValidationFailedError: VALIDATION_FAILED (422), with `strict` only.
            RagPipelineError: As `search`.
        """
        start = time.perf_counter()
        asked = Query(query)
        try:
            first, timings = self._retrieve([asked], self._limits.query_s)
            second, _ = self._retrieve([asked], self._limits.query_s)
        except Exception as error:
            self._log_failure("validate_retrieval", [asked.question], start, error)
            raise
        checks = check_results(first[0].chunks)
        same = [(hit.chunk_id, hit.score) for hit in first[0].chunks] == [
            (hit.chunk_id, hit.score) for hit in second[0].chunks
        ]
        checks["deterministic"] = "" if same else "a second run gave other results"
        checks["not_empty"] = "" if first[0].chunks else "nothing was found"
        failed = tuple(name for name, problem in checks.items() if problem)
        latency_ms = (time.perf_counter() - start) * 1000
        self._log.write(
            "validate_retrieval",
            [asked.question],
            status="error" if failed else "success",
            result_count=len(first[0].chunks),
            timings_ms={**timings, "total": latency_ms},
        )
        if strict and failed:
            raise ValidationFailedError(failed)
        return ValidationReport(
            query=asked.question,
            passed=not failed,
            checks=checks,
            total_results=len(first[0].chunks),
            latency_ms=latency_ms,
        )

    def get_stats(self) -> CollectionStats:
        """Size of the collection in use, at most 30 s old."""
        now, known = time.monotonic(), self._stats
        if known is None or now - known[0] > _STATS_FRESH_S:
            # No lock: callers of a hung store would wait for each other's time limits in turn.
            known = (now, self._within_store(self._limits.query_s, self._read_stats))
            self._stats = known
        return known[1]

    def check_collection(self) -> None:
        """Check that the collection can be searched: model, dimension, and a point's payload.

        Raises:
            StoreError: The collection is missing, empty, of another model, or not reached.
            EmbeddingDimensionError: Questions and points have vectors of different length.
            PayloadError: A point does not keep the payload contract.
        """
        self._within_store(self._limits.query_s, self._retriever.probe)

    def close(self) -> None:
        """Let go of the store; a later call opens it again."""
        self._retriever.close()

    def _run(
        self, operation: str, queries: Sequence[Query], limit_s: float
    ) -> list[SearchResponse]:
        start = time.perf_counter()
        questions = [query.question for query in queries]
        timings: dict[str, float] = {}
        try:
            results, timings = self._retrieve(queries, limit_s)
            validated = time.perf_counter()
            _require_valid(results)
            timings["validate"] = (time.perf_counter() - validated) * 1000
        except Exception as error:
            self._log_failure(operation, questions, start, error)
            raise
        latency_ms = (time.perf_counter() - start) * 1000
        self._log.write(
            operation,
            questions,
            status="success",
            result_count=sum(len(result.chunks) for result in results),
            timings_ms={**timings, "total": latency_ms},
        )
        return [_respond(result, latency_ms, timings) for result in results]

    def _log_failure(
        self, operation: str, questions: list[str], start: float, error: Exception
    ) -> None:
        self._log.write(
            operation,
            questions,
            status="error",
            result_count=0,
            timings_ms={"total": (time.perf_counter() - start) * 1000},
            error=error,
        )

    def _retrieve(
        self, queries: Sequence[Query], limit_s: float
    ) -> tuple[list[RetrievalResult], dict[str, float]]:
        check_queries(queries)
        start = time.perf_counter()
        questions = [query.question for query in queries]
        asked = self._embedding.call(
            lambda: run_within(
                limit_s, lambda: self._retriever.embed_questions(questions), _embedding_timeout
            )
        )
        embedded = time.perf_counter()
        results = self._within_store(
            limit_s - (embedded - start), lambda: self._retriever.search(queries, asked)
        )
        searched = time.perf_counter()
        return results, {
            "embed": (embedded - start) * 1000,
            "search": (searched - embedded) * 1000,
        }

    def _within_store(self, limit_s: float, action: Callable[[], _Result]) -> _Result:
        return self._store.call(lambda: run_within(limit_s, action, _store_timeout))

    def _read_stats(self) -> CollectionStats:
        with self._retriever.session.use() as index:
            count = index.count()
            dim = index.space.model.dim
        unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss: bytes there, KiB elsewhere
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        return CollectionStats(
            total_vectors=count,
            vector_dimension=dim,
            collection_name=self._collection_name,
            vector_count=count,
            memory_usage=f"{peak / 1e6:.1f} MB",
        )


def _require_valid(results: Sequence[RetrievalResult]) -> None:
    for result in results:
        broken = [problem for problem in check_results(result.chunks).values() if problem]
        if broken:
            raise ResultInvalidError(f"{broken[0]}. Run `rag-pipeline audit`")


def _respond(
    result: RetrievalResult, latency_ms: float, timings: dict[str, float]
) -> SearchResponse:
    return SearchResponse(
        query=result.query.question,
        results=[_describe(chunk) for chunk in result.chunks],
        total_results=len(result.chunks),
        latency_ms=latency_ms,
        timings_ms=dict(timings),
        status="success",
    )


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


def _embedding_timeout(limit_s: float) -> EmbeddingTimeoutError:
    return EmbeddingTimeoutError(
        f"the question was not embedded within {limit_s:.3g} s. Try again later"
    )


def _store_timeout(limit_s: float) -> StoreTimeoutError:
    return StoreTimeoutError(
        f"the vector store did not answer within {max(limit_s, 0):.3g} s. Try again later, or ask "
        "for fewer results"
    )


def _refuse_embedding(wait_s: float) -> EmbeddingServiceError:
    return EmbeddingServiceError(
        f"the embedding service failed several times and is left alone for {wait_s:.0f} s"
    )


def _refuse_store(wait_s: float) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"the vector store failed several times and is left alone for {wait_s:.0f} s"
    )
