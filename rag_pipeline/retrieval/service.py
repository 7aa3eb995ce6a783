"""Retrieval under the names of the validation plan, with plain results that are ready for JSON."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Literal, TypedDict

from rag_pipeline.core.closing import Closing
from rag_pipeline.core.errors import QueryError, ResultInvalidError, ValidationFailedError
from rag_pipeline.core.settings import load_settings
from rag_pipeline.retrieval.filters import DEFAULT_TOP_K, QueryFilters
from rag_pipeline.retrieval.hits import check_results
from rag_pipeline.retrieval.models import Query
from rag_pipeline.retrieval.opening import open_retriever
from rag_pipeline.retrieval.protection.limits import MAX_BATCH, Protection, ServiceLimits
from rag_pipeline.retrieval.protection.logs import configure_logging

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.protocols.stores import PointStore
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.retrieval.models import RetrievalResult, ScoredChunk
    from rag_pipeline.retrieval.retriever import Retriever

_STATS_FRESH_S: Final = 30.0


class ResultMetadata(TypedDict):
    """The place of a result in the book."""

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
    """The answer to one query. `timings_ms` has embed, search and validate; in a batch these are
    the times of the whole batch.
    """

    query: str
    results: list[SearchResult]
    total_results: int
    latency_ms: float
    timings_ms: dict[str, float]
    status: Literal["success"]


class ValidationReport(TypedDict):
    """The rules that the results of a query keep or break.

    `checks` maps each rule to the problem found, or to an empty text.
    """

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


class RetrievalService(Closing):
    """The searches of a backend; safe to share among threads.

    Args:
        settings: None reads the environment and `.env`.
        retriever: None opens the one that the settings name.
        limits: Bounds of time and failure; None for those of the validation plan.
        log_to_files: True to write log lines to the console and to `logs/` in the book's state
            folder; False leaves them to the process's own configuration.

    Attributes:
        retriever: Shares the limits, breakers and log of this service, for `answer` and others.

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
        self._protection = Protection(limits, log_questions=chosen.log_questions)
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
        """Find the passages nearest to a question.

        Args:
            query: 1 to 5,000 characters.
            k: Number of results, 1 to 100; takes precedence over that of `filters`.
            filters: Restrict the search.

        Raises:
            QueryError: QUERY_EMPTY, QUERY_TOO_LONG, INVALID_K (400).
            EmbeddingError: EMBEDDING_FAILED (500).
            StoreError: QDRANT_CONNECTION_ERROR (503), QDRANT_TIMEOUT (504), and others.
            ResultInvalidError: INVALID_RESULT (500).
        """
        asked = [Query(query, filters=filters, top_k=k)]
        return self._run("search", asked, self._protection.limits.query_s)[0]

    def batch_search(
        self,
        queries: Iterable[str],
        k: int = DEFAULT_TOP_K,
        filters: QueryFilters | None = None,
    ) -> list[SearchResponse]:
        """Find passages for up to 100 questions in order, sharing the round trips.

        Raises as `search`, for the whole batch.
        """
        if isinstance(queries, str) or not isinstance(queries, Iterable):
            raise QueryError(f"a batch must be a list of texts, not {queries!r:.40}")
        asked = [Query(query, filters=filters, top_k=k) for query in queries]
        if len(asked) > MAX_BATCH:
            raise QueryError(f"a batch has at most {MAX_BATCH} queries, not {len(asked)}. Split it")
        return self._run("batch_search", asked, self._protection.limits.batch_s)

    def validate_retrieval(self, query: str, *, strict: bool = False) -> ValidationReport:
        """Run a query twice and check its results against every rule.

        Args:
            query: 1 to 5,000 characters.
            strict: Raise if a rule is broken.

        Raises:
            ValidationFailedError: VALIDATION_FAILED (422), with `strict` only.
            RagPipelineError: As `search`.
        """
        asked = Query(query)
        both_s = 2 * self._protection.limits.query_s
        with self._protection.watch("validate_retrieval", [asked.question], both_s) as operation:
            first = self.retriever.find([asked], operation)[0].chunks
            second = self.retriever.find([asked], operation)[0].chunks
            checks = check_results(first)
            same = [(hit.chunk_id, hit.score) for hit in first] == [
                (hit.chunk_id, hit.score) for hit in second
            ]
            checks["deterministic"] = "" if same else "a second run gave other results"
            checks["not_empty"] = "" if first else "nothing was found"
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
        """Return the size of the collection in use, at most 30 s old."""
        now, known = time.monotonic(), self._stats
        if known is None or now - known[0] > _STATS_FRESH_S:
            # No lock: callers of a hung store would wait for each other's time limits in turn.
            known = (now, self.retriever.read(self._read_stats))
            self._stats = known
        return known[1]

    def check_collection(self) -> None:
        """Check that the collection can be searched: model, dimension, and a point's payload.

        Raises:
            StoreError: The collection is missing, empty, of another model, or not reached.
            EmbeddingDimensionError: Questions and points have vectors of different length.
            PayloadError: A point does not keep the payload contract.
        """
        self.retriever.probe()

    def close(self) -> None:
        """Release the store; a later call opens it again."""
        self.retriever.close()

    def _run(
        self, operation_name: str, queries: Sequence[Query], limit_s: float
    ) -> list[SearchResponse]:
        questions = [query.question for query in queries]
        with self._protection.watch(operation_name, questions, limit_s) as operation:
            results = self.retriever.find(queries, operation)
            with operation.measure("validate"):
                _require_valid(results)
        latency_ms = operation.elapsed_ms
        return [_respond(result, latency_ms, operation.timings_ms) for result in results]

    def _read_stats(self, index: PointStore) -> CollectionStats:
        count = index.count()
        unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss: bytes there, KiB elsewhere
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        return CollectionStats(
            total_vectors=count,
            vector_dimension=index.space.model.dim,
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
