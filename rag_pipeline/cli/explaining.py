"""How an answer came about: the JSON document of `query --json`, and the text of `--explain`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rag_pipeline.answering.confidence import Signals, measure_signals
from rag_pipeline.answering.models import Answer, AnswerRecord, Level
from rag_pipeline.answering.reading.questions import read_question
from rag_pipeline.cli.terminal import show_fields
from rag_pipeline.retrieval.queries import Mode

if TYPE_CHECKING:
    from rag_pipeline.retrieval.models import RetrievalResult, ScoredChunk


@dataclass(frozen=True, slots=True)
class ExplanationRecord:
    """The steps that led to an answer: how the question was read, searched and judged.

    Attributes:
        question_kind: The kind of answer that the question asks for, such as `definition`.
        subject: The term whose meaning the question asks; otherwise empty.
        search_question: What was searched instead of the question: the question with misspelled
            words corrected, or its terms if it is in another language; otherwise null.
        confidence: Estimated probability that the passages contain the answer, 0 to 1; null for a
            selection and for a fixed reply.
        signals: The measurements from which the confidence is computed; null without a search.
        passages: For each quoted passage, the number of its source and why it was chosen.
    """

    question_kind: str
    subject: str
    search_question: str | None
    confidence: float | None
    signals: Signals | None
    passages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueryRecord(AnswerRecord):
    """The JSON document of `rag-pipeline query --json`: `Answer.to_dict()` and how it came about.

    Attributes:
        chunks: The passages that were read for the answer or before the refusal, best first.
        explanation: How the question was read, and how well the passages fit.
    """

    chunks: tuple[ScoredChunk, ...]
    explanation: ExplanationRecord


def record_query(answer: Answer, result: RetrievalResult) -> QueryRecord:
    """Build the JSON document of a query from the answer and from the search for its passages."""
    searched = result.search_question or result.query.question
    read = read_question(searched)
    is_measured = result.mode is Mode.NORMAL and bool(result.chunks)
    explanation = ExplanationRecord(
        question_kind=read.kind.value,
        subject=read.subject,
        search_question=result.search_question,
        confidence=answer.grounding.confidence,
        signals=measure_signals(result, searched) if is_measured else None,
        passages=answer.explanation,
    )
    known = answer.to_record()
    fields: dict[str, Any] = {name: getattr(known, name) for name in AnswerRecord.__slots__}
    return QueryRecord(**fields, chunks=result.chunks, explanation=explanation)


def show_explanation(record: QueryRecord) -> str:
    """Format how a question was read and searched, and why it was answered or refused.

    The passages that were read are listed with their scores, best first.
    """
    found = record.explanation
    kind = f"{found.question_kind}: {found.subject}" if found.subject else found.question_kind
    fields: list[tuple[str, object]] = [("question kind", kind)]
    if found.search_question is not None:
        fields.append(("searched for", found.search_question))
    fields.append(("level", f"{Level(record.level).words} ({record.reason})"))
    if found.confidence is not None:
        fields.append(("confidence", f"{found.confidence:.2f}"))
    if found.signals is not None:
        signals = found.signals
        fields += [
            ("  similarity", f"{signals.semantic:.2f} of the question to the nearest passage"),
            ("  words", f"{signals.support:.2f} of its least similar words to the passages"),
            ("  covered", f"{signals.cover:.0%} of its words in one passage"),
            ("  known", f"{signals.known:.0%} of its words in the book"),
            ("  searched", f"{signals.chunk_count} chunks"),
        ]
        if signals.standout is not None:
            apart = f"{signals.standout:.1f} deviations above unrelated questions"
            fields.append(("  stands out", apart))
    lines = ["Why this answer:", show_fields(fields)]
    if found.passages:
        lines += ["Passages that were quoted:", *(f"  {reasons}" for reasons in found.passages)]
    if record.chunks:
        lines.append("Passages that were read:")
        lines += [_describe(number, chunk) for number, chunk in enumerate(record.chunks, 1)]
    return "\n".join(lines)


def _describe(number: int, chunk: ScoredChunk) -> str:
    citation, scores = chunk.citation, chunk.channels
    place = citation.place
    if scores is None:
        return f"  {number}. {place}"
    return (
        f"  {number}. {place}: similarity {scores.dense:.2f}, of its parts {scores.windows:.2f}, "
        f"BM25 {scores.bm25:.1f}, {scores.lexical:.0%} of the words, rank score {scores.fused:.2f}"
    )
