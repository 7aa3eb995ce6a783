"""Answers that no model writes: replies, refusals and passages, also instead of a failing model."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.confidence import weigh_question
from rag_pipeline.answering.models import Level, Reason
from rag_pipeline.answering.quoting.extracted import NO_MODEL_NOTICE, quote_answer
from rag_pipeline.answering.reading.small_talk import give_reply
from rag_pipeline.answering.refusals import refuse
from rag_pipeline.core.errors import AnswerServiceError

if TYPE_CHECKING:
    from collections.abc import Generator

    from rag_pipeline.answering.models import Answer
    from rag_pipeline.answering.preparing import PreparedAnswer

UNAVAILABLE_NOTICE: Final = (
    "The answer model could not be used, so the answer consists of passages from the book."
)
"""Start of the notice of an answer that a failing model should have written. Its error follows."""


def give_ready(
    prepared: PreparedAnswer, notice: str = NO_MODEL_NOTICE
) -> Generator[str, None, Answer]:
    """Yield the pieces of an answer that no model writes, and return the answer.

    Args:
        prepared: The question with its passages.
        notice: Says why passages are quoted, if they are.
    """
    grounded, asked = prepared.grounding, prepared.query.question
    if grounded.reason is Reason.SMALL_TALK:
        return give_reply(grounded, asked)
    if grounded.level is Level.NOT_COVERED:
        return refuse(grounded, asked)
    question = prepared.search_question or prepared.question
    weights = weigh_question(prepared.result.evidence, question)
    seen = "\n\n".join(turn.answer for turn in prepared.turns) if prepared.is_follow_up else ""
    return _precede(grounded.message, quote_answer(grounded, question, weights, notice, seen))


def quote_on_failure(
    pieces: Generator[str, None, Answer], prepared: PreparedAnswer
) -> Generator[str, None, Answer]:
    """Yield what a model writes. If its service fails before the first piece, quote passages."""
    with closing(pieces):
        try:
            first = next(pieces)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # the type of a generator's result is lost
        except AnswerServiceError as error:
            notice = describe_failure(error)
            return (yield from give_ready(prepared, notice))
        yield first
        return (yield from pieces)


def describe_failure(error: AnswerServiceError) -> str:
    """Return the notice of an answer that a failing model should have written."""
    return f"{UNAVAILABLE_NOTICE} Error {error.code}: {error.public_message}"


def _precede(message: str, pieces: Generator[str, None, Answer]) -> Generator[str, None, Answer]:
    """Yield a message as the first paragraph of an answer, and return the answer with it.

    If the message is empty, the answer does not change.
    """
    start = f"{message}\n\n" if message else ""
    if start:
        yield start
    complete = yield from pieces
    return replace(complete, text=start + complete.text)


def exhaust(pieces: Generator[str, None, Answer]) -> tuple[list[str], Answer]:
    """Return all pieces of an answer, and the answer."""
    shown = []
    while True:
        try:
            shown.append(next(pieces))
        except StopIteration as end:
            return shown, end.value
