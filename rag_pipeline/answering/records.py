"""The JSON form of an answer, for programs that store or send it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_pipeline.answering.models import Answer, AnswerSentence, Passage, Source
    from rag_pipeline.retrieval.models import Citation


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """An answer as JSON, as `Answer.to_dict()` returns it.

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
        confidence: Estimated probability that the passages contain the answer, 0 to 1; null for a
            selection and for a fixed reply.
        model: Name of the model that wrote the answer; null if none did.
        complete: False if the token limit or a content filter cut off the answer.
        sentences: The sentences of the answer with the numbers they cite; empty for a refusal.
        passages: The passages of an extracted answer, the main passage first.
        citations: The cited places by number, or the sections that a refusal suggests.
        sources: The texts that the answer could cite, by number. Passages of one section are one.
        notices: Hints for the reader.
    """

    question: str
    mode: str
    kind: str
    answer: str
    level: str
    sufficient_context: bool
    reason: str
    confidence: float | None
    model: str | None
    complete: bool
    sentences: tuple[AnswerSentence, ...]
    passages: tuple[Passage, ...]
    citations: tuple[Citation, ...]
    sources: tuple[Source, ...]
    notices: tuple[str, ...]


def record_answer(answer: Answer) -> AnswerRecord:
    """Return the answer as the record that is written as JSON."""
    grounding = answer.grounding
    return AnswerRecord(
        question=answer.question,
        mode=grounding.mode.value,
        kind=answer.kind.value,
        answer=answer.text,
        level=grounding.level.value,
        sufficient_context=grounding.sufficient_context,
        reason=grounding.reason.value,
        confidence=grounding.confidence,
        model=answer.model,
        complete=answer.complete,
        sentences=answer.sentences,
        passages=answer.passages,
        citations=answer.citations,
        sources=grounding.sources,
        notices=answer.notices,
    )
