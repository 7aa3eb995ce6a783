"""Run a golden set: ask a retriever every question as a user would, and record the results."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from rag_pipeline.core.errors import RagPipelineError
from rag_pipeline.core.errors.hiding import describe_kind
from rag_pipeline.core.text.tokens import count_tokens
from rag_pipeline.evaluation.records import (
    EvaluationRun,
    QuestionRun,
    RetrievedChunk,
)
from rag_pipeline.retrieval import Query
from rag_pipeline.retrieval.filters import DEFAULT_TOP_K

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_pipeline.evaluation.golden_set import GoldenQuery, GoldenSet
    from rag_pipeline.retrieval import RetrievalResult, ScoredChunk

DEPTH: Final = 20
"""Passages requested per question: enough for ten ranks and usually 2,000 tokens of context."""

_EXCERPT_CHARS: Final = 240


class Retriever(Protocol):
    """An object that finds passages for a query."""

    def retrieve(self, query: Query, /) -> RetrievalResult:
        """Return the passages that match a query best, best first."""


class Grounded(Protocol):
    """The decision of a grounding policy about retrieved passages."""

    @property
    def sufficient_context(self) -> bool:
        """True if the passages are sufficient for an answer."""


if TYPE_CHECKING:
    Grounder = Callable[[RetrievalResult, str], Grounded]


def run_golden_set(
    golden: GoldenSet, retriever: Retriever, grounder: Grounder | None
) -> EvaluationRun:
    """Ask every question of a golden set, in order.

    If the retriever or the policy raises an exception, the result records its message, and the
    run continues. The first question is asked an extra time at the start, because that request
    also loads the model; its time is recorded as `cold_ms`.

    Args:
        golden: The questions.
        retriever: The retriever to ask; each query requests 20 passages.
        grounder: The policy that decides if passages are sufficient for an answer. With None, no
            decision is recorded.
    """
    cold_ms = _ask(golden.queries[0], retriever, None).latency_ms if golden.queries else 0.0
    return EvaluationRun(
        tuple(_ask(query, retriever, grounder) for query in golden.queries),
        cold_ms,
    )


def _ask(query: GoldenQuery, retriever: Retriever, grounder: Grounder | None) -> QuestionRun:
    started = time.perf_counter()
    try:
        result = retriever.retrieve(Query(query.question, top_k=DEPTH))
        latency_ms = _since(started)
        refused = None
        if grounder is not None:
            shown = replace(result, chunks=result.chunks[:DEFAULT_TOP_K])  # a user gets only these
            refused = not grounder(shown, query.question).sufficient_context
        retrieved = tuple(_describe(chunk) for chunk in result.chunks)
    except Exception as error:  # noqa: BLE001  # any failure is recorded as a miss
        return QuestionRun(query.id, (), None, _since(started), name_error(error))
    return QuestionRun(query.id, retrieved, refused, latency_ms)


def _describe(chunk: ScoredChunk) -> RetrievedChunk:
    metadata = chunk.metadata
    return RetrievedChunk(
        chunk_id=chunk.chunk_id,
        doc_path=metadata.doc_path,
        section_heading=metadata.section_heading,
        heading_breadcrumb=tuple(metadata.heading_breadcrumb),
        score=float(chunk.score),
        start_byte=metadata.start_byte,
        end_byte=metadata.end_byte,
        token_count=count_tokens(chunk.text),
        excerpt=chunk.text[:_EXCERPT_CHARS],
    )


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000


def name_error(error: Exception) -> str:
    """Return the kind and the message of an exception, as results record a failure."""
    kind = error.code if isinstance(error, RagPipelineError) else describe_kind(error)
    return f"{kind}: {error}"
