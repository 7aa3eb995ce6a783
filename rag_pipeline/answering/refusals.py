"""Turn a decision not to answer into a refusal that names sections to try."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rag_pipeline.answering.models import Answer, AnswerKind, Level, Reason
from rag_pipeline.retrieval.queries import Mode

if TYPE_CHECKING:
    from collections.abc import Generator

    from rag_pipeline.answering.models import GroundedResponse
    from rag_pipeline.answering.voice import Voice
    from rag_pipeline.retrieval.models import Citation


def refuse(grounded: GroundedResponse, question: str, voice: Voice) -> Generator[str, None, Answer]:
    """Yield the text of a refusal as one piece, and return the refusal."""
    refusal = make_refusal(grounded, voice, question)
    yield refusal.text
    return refusal


def decline(grounded: GroundedResponse, voice: Voice) -> GroundedResponse:
    """Return a refusal for a question that a model declined to answer from the sources."""
    selected = grounded.mode == Mode.SELECTED_TEXT_ONLY
    return replace(
        grounded,
        level=Level.NOT_COVERED,
        reason=Reason.MODEL_DECLINED,
        message=voice.say("selection_declined" if selected else "declined"),
    )


def make_refusal(grounded: GroundedResponse, voice: Voice, question: str = "") -> Answer:
    """Return the refusal of a question. Its citations are the related sections or the selection."""
    selected = grounded.mode == Mode.SELECTED_TEXT_ONLY
    return Answer(
        question=question,
        text=grounded.message + list_related(grounded, voice),
        kind=AnswerKind.REFUSED,
        sentences=(),
        citations=grounded.citations if selected else grounded.related,
        grounding=grounded,
        notices=grounded.notices,
    )


def list_related(grounded: GroundedResponse, voice: Voice) -> str:
    """Return the text that lists related sections below a refusal; empty if there are none."""
    if not grounded.related:
        return ""
    places = "\n".join(_format_place(entry) for entry in grounded.related)
    return f"\n\n{voice.say('related')}\n{places}"


def _format_place(citation: Citation) -> str:
    return f"- {citation.place} ({citation.url})" if citation.url else f"- {citation.place}"
