"""Answers that no model writes: replies, refusals and passages, also instead of a failing model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rag_pipeline.answering.confidence import weigh_question
from rag_pipeline.answering.models import Level, Reason
from rag_pipeline.answering.quoting.extracted import quote_answer
from rag_pipeline.answering.reading.small_talk import give_reply
from rag_pipeline.answering.refusals import refuse
from rag_pipeline.answering.sources import cite_sources

if TYPE_CHECKING:
    from collections.abc import Generator

    from rag_pipeline.answering.models import Answer, Notice
    from rag_pipeline.answering.preparing import PreparedAnswer
    from rag_pipeline.answering.voice import Voice


def give_ready(
    prepared: PreparedAnswer, notice: Notice | None, voice: Voice
) -> Generator[str, None, Answer]:
    """Yield the pieces of an answer that no model writes, and return the answer.

    Args:
        prepared: The question with its passages.
        notice: Says why passages are quoted. Unless no model is configured, its sentence precedes
            them.
        voice: The language of the fixed sentences.
    """
    grounded, asked = prepared.grounding, prepared.query.question
    if grounded.reason is Reason.SMALL_TALK:
        return give_reply(grounded, asked)
    if grounded.level is Level.NOT_COVERED:
        return refuse(grounded, asked, voice)
    is_told = notice is not None and notice.code != "no_model"
    message = notice.text if notice is not None and is_told and not grounded.message else ""
    return _precede(message or grounded.message, _quote(prepared, notice))


def append_quotes(answer: Answer, prepared: PreparedAnswer, notice: Notice) -> tuple[str, Answer]:
    """Return the quotes that follow an answer which broke off, and the answer with them.

    Args:
        answer: The part of the answer that was shown.
        prepared: The question with its passages.
        notice: The sentence before the quotes.
    """
    _, quoted = exhaust(_quote(prepared, notice))
    more = f"\n\n{notice.text}\n\n{quoted.text}"
    whole = replace(
        answer,
        text=answer.text + more,
        sentences=(*answer.sentences, *quoted.sentences),
        passages=quoted.passages,
        explanation=quoted.explanation,
    )
    return more, cite_sources(whole)


def _quote(prepared: PreparedAnswer, notice: Notice | None) -> Generator[str, None, Answer]:
    question = prepared.search_question or prepared.question
    weights = weigh_question(prepared.result.evidence, question)
    seen = "\n\n".join(turn.answer for turn in prepared.turns) if prepared.is_follow_up else ""
    notices = () if notice is None else (notice,)
    return quote_answer(prepared.grounding, question, weights, notices, seen)


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
