"""Asks a retriever the questions of a golden set as a user would, and keeps what comes back."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from rag_pipeline.core.tokens import count_tokens
from rag_pipeline.evaluation.records import (
    EvaluationRun,
    QuestionRun,
    RetrievedChunk,
    SelectedTextRun,
)
from rag_pipeline.retrieval import Mode, Query
from rag_pipeline.retrieval.filters import DEFAULT_TOP_K

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rag_pipeline.evaluation.golden_set import GoldenQuery, GoldenSet, SelectedTextCase
    from rag_pipeline.retrieval import RetrievalResult, ScoredChunk

DEPTH: Final = 20
"""Passages asked for: enough for ten ranks and, in most books, for 2,000 tokens of context."""

_EXCERPT_CHARS: Final = 240
_LEAK_CHARS: Final = 120


class Retriever(Protocol):
    """Anything that finds passages for a query."""

    def retrieve(self, query: Query, /) -> RetrievalResult:
        """Find passages, best first."""


class Grounded(Protocol):
    """A grounding policy's verdict."""

    @property
    def sufficient_context(self) -> bool:
        """True if the passages suffice for an answer."""

    @property
    def context(self) -> str:
        """The text that a model would be given to answer from."""


if TYPE_CHECKING:
    Grounder = Callable[[RetrievalResult, str], Grounded]


def run_golden_set(
    golden: GoldenSet, retriever: Retriever, grounder: Grounder | None
) -> EvaluationRun:
    """Ask every question and every selected-text case, in order.

    Any failure of the system is kept with its message in place of a result, and counts as a miss.
    The first question is asked once before all others, so that loading the model is timed apart.

    Args:
        golden: Questions and selected-text cases.
        retriever: Asked for 20 passages a question.
        grounder: Decides whether passages suffice; None leaves refusals unmeasured.
    """
    cold_ms = _ask(golden.queries[0], retriever, None).latency_ms if golden.queries else 0.0
    return EvaluationRun(
        tuple(_ask(query, retriever, grounder) for query in golden.queries),
        tuple(_ask_selection(case, retriever, grounder) for case in golden.selected_text),
        cold_ms,
    )


def _ask(query: GoldenQuery, retriever: Retriever, grounder: Grounder | None) -> QuestionRun:
    started = time.perf_counter()
    try:
        result = retriever.retrieve(Query(query.question, top_k=DEPTH))
        latency_ms = _since(started)
        refused = None
        if grounder is not None:
            shown = replace(result, chunks=result.chunks[:DEFAULT_TOP_K])  # what a user would get
            refused = not grounder(shown, query.question).sufficient_context
        retrieved = tuple(_describe(chunk) for chunk in result.chunks)
    except Exception as error:  # noqa: BLE001  # whatever fails is a miss with its message kept
        return QuestionRun(query.id, (), None, _since(started), _name_error(error))
    return QuestionRun(query.id, retrieved, refused, latency_ms)


def _ask_selection(
    case: SelectedTextCase, retriever: Retriever, grounder: Grounder | None
) -> SelectedTextRun:
    query = Query(
        case.question,
        mode=Mode.SELECTED_TEXT_ONLY,
        selected_text=case.selected_text,
        source_doc_path=case.doc_path,
        source_section=case.section_heading,
        top_k=DEPTH,
    )
    started = time.perf_counter()
    try:
        result = retriever.retrieve(query)
        latency_ms = _since(started)
        leaks = _find_leaks(result, case.selected_text)
        refused = None
        if grounder is not None:
            grounded = grounder(result, case.question)
            refused = not grounded.sufficient_context
            leaks += _find_terms(grounded.context, case.must_not_contain)
    except Exception as error:  # noqa: BLE001  # whatever fails is a failed case with its message kept
        return SelectedTextRun(case.id, (), None, _since(started), _name_error(error))
    return SelectedTextRun(case.id, leaks, refused, latency_ms)


def _find_leaks(result: RetrievalResult, selection: str) -> tuple[str, ...]:
    """Find returned texts that are not part of the selection, ignoring white space."""
    allowed = " ".join(selection.split())
    texts = [text for chunk in result.chunks for text in (chunk.text, chunk.context_text)]
    found = dict.fromkeys(text for text in (" ".join(text.split()) for text in texts))
    return tuple(text[:_LEAK_CHARS] for text in found if text not in allowed)


def _find_terms(context: str, terms: Sequence[str]) -> tuple[str, ...]:
    return tuple(term for term in terms if term.casefold() in context.casefold())


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


def _name_error(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
