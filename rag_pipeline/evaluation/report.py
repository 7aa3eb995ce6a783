"""Evaluation of a retriever: ask the golden set, compute all measures, and build the report."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from rag_pipeline.answering import Turn
from rag_pipeline.answering.conversation import complete_question
from rag_pipeline.core.errors import RagPipelineError, describe_kind
from rag_pipeline.core.text.terms import count_tokens
from rag_pipeline.evaluation.measures import compute, group_by, since_ms
from rag_pipeline.evaluation.metrics import (
    DOCUMENT,
    RECALL,
    SECTION,
    rank_hits,
    score_budgets,
    score_rankings,
    summarize,
)
from rag_pipeline.evaluation.records import (
    FOLLOW_UP_DEPTH,
    REPORT_HALF,
    EvaluationReport,
    ExpectedPlace,
    Latency,
    QuestionResult,
    RefusalScores,
    RetrievedChunk,
    hash_parts,
    hits_section,
)
from rag_pipeline.retrieval import Query, RetrievalResult, Retriever, ScoredChunk
from rag_pipeline.retrieval.queries import DEFAULT_TOP_K

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rag_pipeline.core.models import ParsedDoc
    from rag_pipeline.evaluation.golden_set import Conversation, GoldenQuery, GoldenSet
    from rag_pipeline.evaluation.records import Fingerprint, Scores, Summary


DEPTH: Final = 20
"""Passages requested per question: enough for ten ranks and usually 2,000 tokens of context."""

_EXCERPT_CHARS: Final = 240


Grounder: TypeAlias = "Callable[[RetrievalResult, str], bool]"
"""Returns True if the passages that were found for a question are sufficient for an answer."""


class _Run(NamedTuple):
    """The system's response to a question, before it is measured.

    Attributes:
        retrieved: The retrieved chunks, best first; empty if the system failed.
        refused: True if the passages were not sufficient for an answer; None if the system failed.
        error: Class and message of the exception if the system failed. A failure counts as a miss.
    """

    retrieved: tuple[RetrievedChunk, ...]
    refused: bool | None
    latency_ms: float
    error: str | None = None


def _ask(query: GoldenQuery, retriever: Retriever, grounder: Grounder) -> _Run:
    started = time.perf_counter()
    try:
        result = retriever.retrieve(Query(query.question, top_k=DEPTH))
        latency_ms = since_ms(started)
        shown = replace(result, chunks=result.chunks[:DEFAULT_TOP_K])  # a user gets only these
        refused = not grounder(shown, query.question)
        retrieved = tuple(_describe(chunk) for chunk in result.chunks)
    except Exception as error:  # noqa: BLE001  # any failure is recorded as a miss
        return _Run((), None, since_ms(started), name_error(error))
    return _Run(retrieved, refused, latency_ms)


def _describe(chunk: ScoredChunk) -> RetrievedChunk:
    metadata = chunk.metadata
    return RetrievedChunk(
        chunk_id=chunk.chunk_id,
        doc_path=metadata.doc_path,
        section_heading=metadata.section_heading,
        heading_breadcrumb=tuple(metadata.heading_breadcrumb),
        score=float(chunk.score),
        token_count=count_tokens(chunk.text),
        excerpt=chunk.text[:_EXCERPT_CHARS],
    )


def name_error(error: Exception) -> str:
    """Return the kind and the message of an exception, as results record a failure."""
    kind = error.code if isinstance(error, RagPipelineError) else describe_kind(error)
    return f"{kind}: {error}"


def search_follow_ups(conversations: Iterable[Conversation], retriever: Retriever) -> list[bool]:
    """Search for each follow-up question of the report half, and return which find a right page.

    The question is completed with the first question of its conversation, without a model. A search
    that fails finds no page.
    """
    return [
        _finds_page(one, retriever)
        for one in conversations
        if one.half == REPORT_HALF and one.kind == "follow_up"
    ]


def _finds_page(one: Conversation, retriever: Retriever) -> bool:
    pages = {page.doc_path for page in one.expected}
    searched = complete_question(one.question, [Turn(one.first)])
    try:
        result = retriever.retrieve(Query(searched, top_k=FOLLOW_UP_DEPTH))
    except RagPipelineError:  # recorded like a failed question of the golden set: it found nothing
        return False
    return any(chunk.metadata.doc_path in pages for chunk in result.chunks)


_SHOWN: Final = 10  # chunks of each question that the report keeps
_FLAG_BELOW: Final = 0.5  # for recall@5 at document level, as tasks.md T050 asks


def evaluate(
    golden: GoldenSet,
    retriever: Retriever,
    grounder: Grounder,
    documents: Sequence[ParsedDoc],
    fingerprint: Fingerprint,
) -> EvaluationReport:
    """Ask a retriever the questions of a golden set, and compute the report's measures.

    If the retriever or the policy raises an exception, the result records its message, and the
    evaluation continues. The first question is asked an extra time at the start, because that
    request also loads the model; its time is recorded as `cold_ms`.

    Args:
        golden: The golden set, already checked with `validate_against_corpus`.
        retriever: A retriever over a collection that was built from `documents`.
        grounder: The grounding policy, which decides about refusals.
        documents: All documents of the corpus.
        fingerprint: Everything that the result depends on; stored in the report.
    """
    cold_ms = _ask(golden.queries[0], retriever, grounder).latency_ms if golden.queries else 0.0
    runs = [_ask(query, retriever, grounder) for query in golden.queries]
    scores = _score_questions(golden, runs)
    module_of: dict[str, str] = {
        parsed.document.doc_path: parsed.document.module for parsed in documents
    }
    questions = tuple(
        _describe_question(query, one, scores.get(query.id, {}), module_of)
        for query, one in zip(golden.queries, runs, strict=True)
    )
    halves = group_by(questions, lambda result: [result.half])
    return EvaluationReport(
        report_version=1,
        created_at=datetime.now(UTC).isoformat(timespec="microseconds"),
        fingerprint=fingerprint,
        overall=summarize(questions),
        halves=_summarize(halves),
        categories=_summarize(group_by(questions, lambda result: [result.category])),
        modules=_summarize(group_by(questions, lambda result: result.modules)),
        refusal={
            name: compute(RefusalScores, group)
            for name, group in {"all": questions, **halves}.items()
        },
        latency=_measure_latency(runs, cold_ms),
        failure_count=sum(one.error is not None for one in runs),
        questions=questions,
    )


def _score_questions(golden: GoldenSet, runs: Sequence[_Run]) -> dict[str, Scores]:
    asked = [
        (query, run.retrieved)
        for query, run in zip(golden.queries, runs, strict=True)
        if query.expected
    ]
    scores: dict[str, Scores] = {query.id: {} for query, _ in asked}
    for level in (DOCUMENT, SECTION):
        ranked = {query.id: rank_hits(query, retrieved, level) for query, retrieved in asked}
        measured = score_rankings(ranked)
        for query, retrieved in asked:
            budgets = score_budgets(ranked[query.id], retrieved)
            scores[query.id][level] = measured[query.id] | budgets
    return scores


def _describe_question(
    query: GoldenQuery, run: _Run, scores: Scores, module_of: Mapping[str, str]
) -> QuestionResult:
    places = []
    for section in query.expected:
        ranks = (at for at, one in enumerate(run.retrieved, 1) if hits_section(one, section))
        heading, group, rank = section.section_heading, section.group, next(ranks, None)
        places.append(ExpectedPlace(section.doc_path, heading, group, rank))
    expected = [repr((place.doc_path, place.section_heading, place.group)) for place in places]
    modules = (module_of.get(place.doc_path, "") for place in places)
    return QuestionResult(
        query_id=query.id,
        question=query.question,
        question_hash=hash_parts([query.question, str(query.all_of), *sorted(expected)]),
        category=query.category,
        modules=tuple(dict.fromkeys(module or "top level" for module in modules)),
        half=query.half,
        all_of=query.all_of,
        expected=tuple(places),
        retrieved=run.retrieved[:_SHOWN],
        scores=scores,
        refused=run.refused,
        latency_ms=run.latency_ms,
        error=run.error,
        flagged=scores.get(DOCUMENT, {}).get(RECALL, 1.0) < _FLAG_BELOW,
    )


def _summarize(groups: Mapping[str, Sequence[QuestionResult]]) -> dict[str, Summary]:
    """Return the means of each group; groups without answerable questions are left out."""
    summaries = {name: summarize(group) for name, group in groups.items()}
    return {name: summary for name, summary in summaries.items() if summary}


def _measure_latency(runs: Sequence[_Run], cold_ms: float) -> Latency:
    """Compute the percentiles of the retrieval times.

    Failed questions count as slowest; leaving them out would make timeouts improve the figures.
    A percentile is None if it falls on a failed question, or if there are no questions.
    """
    times = [run.latency_ms if run.error is None else np.inf for run in runs] or [np.inf]
    found = np.percentile(times, [50, 95], method="inverted_cdf").tolist()
    p50_ms, p95_ms = (value if np.isfinite(value) else None for value in found)
    return Latency(p50_ms, p95_ms, cold_ms)
