"""Check if a chat model is good enough for a book, with questions about the book's own sections."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.models import Answer, AnswerKind, Level
from rag_pipeline.retrieval.queries import Query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.answering.assistant import Assistant
    from rag_pipeline.retrieval.open_index import ContentsPage

QUESTIONS: Final = 6
_LEAST_WORDS: Final = 2  # a heading of one word, such as "Overview", is no subject
_LEAST_GROUNDED: Final = 0.8
_MOST_DECLINES: Final = 1


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """What a model did with one question.

    Attributes:
        question: The question.
        outcome: `written`, `declined`, `failed`, `not_grounded` or `not_asked`.
        error: Code of the failure; empty if the model did not fail.
        sentences: Number of sentences that the model wrote.
        grounded: Number of them that stand in the sources.
        cited: Number of them that the model cited itself.
        first_s: Seconds until the first text of the answer.
        total_s: Seconds until the answer was complete.
        text: The text that a reader sees.
    """

    question: str
    outcome: str
    error: str
    sentences: int
    grounded: int
    cited: int
    first_s: float
    total_s: float
    text: str


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """The result of checking a model.

    Attributes:
        model: Name of the model.
        prompt_tokens: Most tokens of a prompt.
        failed: Number of questions in which the model failed.
        declined: Number of questions that the model declined although the passages answer them.
        grounded_share: Share of written sentences that stand in the sources; 0 without sentences.
        cited_share: Share of written sentences that the model cited itself; 0 without sentences.
        is_useful: True if the model is better than the quotes.
        answers: What the model did with each question.
    """

    model: str
    prompt_tokens: int
    failed: int
    declined: int
    grounded_share: float
    cited_share: float
    is_useful: bool
    answers: tuple[CheckedAnswer, ...]


def choose_questions(pages: Sequence[ContentsPage]) -> list[str]:
    """Return questions about sections of a book that lie far apart from each other."""
    subjects = [
        section.heading if len(section.heading.split()) >= _LEAST_WORDS else page.title
        for page in pages
        for section in (*page.sections[:1], *page.sections[-1:])
    ] or [page.title for page in pages]
    subjects = list(dict.fromkeys(subject.strip(" ?.!") for subject in subjects))
    step = max(1, len(subjects) // QUESTIONS)
    return [f"What does the text say about {subject}?" for subject in subjects[::step][:QUESTIONS]]


def check_model(assistant: Assistant, questions: Sequence[str]) -> ModelCheck:
    """Ask a model questions, and judge if its answers are better than the quotes.

    Args:
        assistant: An assistant with a chat model.
        questions: Questions that the book answers.

    Raises:
        ValueError: The assistant has no chat model.
    """
    model = assistant.chat_model
    if model is None:
        raise ValueError("the assistant has no chat model")
    answers = tuple(_ask(assistant, question) for question in questions)
    asked = [entry for entry in answers if entry.outcome != "not_asked"]
    sentences = sum(entry.sentences for entry in asked)
    failed = sum(entry.outcome == "failed" for entry in asked)
    declined = sum(entry.outcome == "declined" for entry in asked)
    grounded = sum(entry.grounded for entry in asked) / sentences if sentences else 0.0
    is_useful = (
        bool(asked)
        and not failed
        and declined <= _MOST_DECLINES
        and grounded >= _LEAST_GROUNDED
        and all(entry.outcome in {"written", "declined"} for entry in asked)
    )
    return ModelCheck(
        model=model.name,
        prompt_tokens=model.prompt_tokens,
        failed=failed,
        declined=declined,
        grounded_share=grounded,
        cited_share=sum(entry.cited for entry in asked) / sentences if sentences else 0.0,
        is_useful=is_useful,
        answers=answers,
    )


def count_sentences(answer: Answer) -> tuple[int, int, int]:
    """Return the sentences that a model wrote, those in the sources, and those it cited itself.

    An answer of which no sentence stands in a source counts as one sentence.
    """
    noted = {notice.code: notice.data for notice in answer.notices}
    if "not_grounded" in noted:
        return 1, 0, 0
    if answer.kind is not AnswerKind.GENERATED:
        return 0, 0, 0
    left = noted.get("sentences_dropped", noted.get("sentences_marked", {}))
    grounded = sum(bool(one.cited) for one in answer.sentences)
    cited = grounded - int(noted.get("citations_added", {}).get("count", 0))
    return grounded + int(left.get("count", 0)), grounded, max(0, cited)


def _ask(assistant: Assistant, question: str) -> CheckedAnswer:
    started = time.monotonic()
    first_s = 0.0
    with assistant.stream(Query(question)) as stream:
        for _ in stream:
            first_s = first_s or time.monotonic() - started
        answer = stream.answer
    noted = {notice.code: notice.data for notice in answer.notices}
    outcome = "written"
    if stream.grounding.level is Level.NOT_COVERED:
        outcome = "not_asked"
    elif "model_unavailable" in noted or not answer.complete:
        outcome = "failed"
    elif "model_declined" in noted or answer.kind is AnswerKind.REFUSED:
        outcome = "declined"
    elif "not_grounded" in noted:
        outcome = "not_grounded"
    error = str(noted.get("model_unavailable", {}).get("error", ""))
    counts = count_sentences(answer)
    total_s = time.monotonic() - started
    return CheckedAnswer(question, outcome, error, *counts, first_s, total_s, answer.text)
