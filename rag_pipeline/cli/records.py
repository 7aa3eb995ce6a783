"""The JSON documents of `rag-pipeline search --json` and `rag-pipeline query --json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_pipeline.answering.confidence import measure_signals
from rag_pipeline.answering.reading.questions import read_question
from rag_pipeline.retrieval.queries import Mode

if TYPE_CHECKING:
    from rag_pipeline.answering.confidence import Signals
    from rag_pipeline.answering.models import Answer, AnswerSentence, Passage, Source
    from rag_pipeline.retrieval.models import Citation, RetrievalResult, ScoredChunk


@dataclass(frozen=True, slots=True)
class SearchRecord:
    """The JSON document of `rag-pipeline search --json`.

    Attributes:
        question: The question as it was asked.
        mode: Always `normal`, which means that the whole book was searched.
        search_question: The question that was searched because words of the question are
            misspelled; null if nothing was corrected.
        total_candidates: Number of passages that were ranked before the list was cut to `--top-k`.
        chunks: The passages, best first.
    """

    question: str
    mode: str
    search_question: str | None
    total_candidates: int
    chunks: tuple[ScoredChunk, ...]


@dataclass(frozen=True, slots=True)
class ExplanationRecord:
    """The steps that led to an answer: how the question was read, searched and judged.

    Attributes:
        question_kind: `definition`, `code`, `how_to`, `comparison` or `other`.
        subject: The term whose meaning the question asks; otherwise empty.
        search_question: What was searched instead of the question: the question with misspelled
            words corrected, or its terms if it is in another language; otherwise null.
        confidence: Estimated probability that the passages contain the answer, 0 to 1; null for a
            selection and for a fixed reply.
        signals: The measurements from which the confidence is computed; null if there are none.
        passages: For each quoted passage, the number of its source and why it was chosen.
    """

    question_kind: str
    subject: str
    search_question: str | None
    confidence: float | None
    signals: Signals | None
    passages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """The JSON document of `rag-pipeline query --json`.

    Attributes:
        question: The question as it was asked.
        mode: `normal` (the whole book) or `selected_text_only`.
        kind: `generated` (a model wrote the answer), `extracted` (passages quoted from the book),
            `refused`, or `reply` (a fixed reply to a greeting or to a question about the tutor).
        answer: The text of the answer. `[n]` cites `sources[n-1]`.
        level: `answered`, `closest_passages` (perhaps no answer) or `not_covered`.
        sufficient_context: True if `level` is `answered`.
        reason: Why the passages suffice or not: `sufficient`, `uncertain`, `no_passages`,
            `not_covered`, `unrelated_to_selection`, `model_declined` or `small_talk`.
        model: Name of the model that wrote the answer; null if none did.
        sentences: The sentences of the answer with the numbers they cite; empty for a refusal.
        passages: The passages of an extracted answer, the main passage first.
        citations: The cited places by number, or the sections that a refusal suggests.
        sources: The texts that the answer could cite, by number. Passages of one section are one.
        chunks: The passages that were read for the answer or before the refusal, best first.
        notices: Hints for the reader.
        explanation: How the question was read, and how well the passages fit.
    """

    question: str
    mode: str
    kind: str
    answer: str
    level: str
    sufficient_context: bool
    reason: str
    model: str | None
    sentences: tuple[AnswerSentence, ...]
    passages: tuple[Passage, ...]
    citations: tuple[Citation, ...]
    sources: tuple[Source, ...]
    chunks: tuple[ScoredChunk, ...]
    notices: tuple[str, ...]
    explanation: ExplanationRecord


def record_search(question: str, result: RetrievalResult) -> SearchRecord:
    """Build the JSON document of a search from its result."""
    searched = result.search_question
    return SearchRecord(
        question, result.mode.value, searched, result.total_candidates, result.chunks
    )


def record_answer(answer: Answer, result: RetrievalResult) -> AnswerRecord:
    """Build the JSON document of a query from the answer and from the search for its passages."""
    searched = result.search_question or result.query.question
    read = read_question(searched)
    is_measured = result.mode is Mode.NORMAL and bool(result.chunks)
    return AnswerRecord(
        question=answer.question,
        mode=answer.grounding.mode.value,
        kind=answer.kind.value,
        answer=answer.text,
        level=answer.grounding.level.value,
        sufficient_context=answer.grounding.sufficient_context,
        reason=answer.grounding.reason.value,
        model=answer.model,
        sentences=answer.sentences,
        passages=answer.passages,
        citations=answer.citations,
        sources=answer.grounding.sources,
        chunks=result.chunks,
        notices=answer.notices,
        explanation=ExplanationRecord(
            question_kind=read.kind.value,
            subject=read.subject,
            search_question=result.search_question,
            confidence=answer.grounding.confidence,
            signals=measure_signals(result, searched) if is_measured else None,
            passages=answer.explanation,
        ),
    )
