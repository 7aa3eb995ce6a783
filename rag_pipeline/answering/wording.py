"""Let a model word a question so that it can be searched: a follow-up, or one to translate."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.conversations.history import (
    read_rewrite,
    read_translation,
    rewrite_messages,
    translation_messages,
)
from rag_pipeline.answering.reading.languages import find_language, find_languages
from rag_pipeline.retrieval.queries import Mode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.answering.preparing import Plan
    from rag_pipeline.core.protocols import ChatMessage, ChatModel
    from rag_pipeline.retrieval.models import ScoredChunk
    from rag_pipeline.retrieval.protection.limits import Protection

REWORDING_S: Final = 5.0
"""Seconds that a model has to word a question; then the rules' wording is searched."""


async def reword(plan: Plan, model: ChatModel | None, protection: Protection) -> str:
    """Return the question to search: a model's wording of a follow-up, or the completed question.

    The completed question is returned if there is no model, if the question needs no earlier turn,
    and if the model fails, is too slow or writes something else.
    """
    if model is None or not plan.is_follow_up or protection.chat_model.state != "closed":
        return plan.completed
    text = await _ask(model, rewrite_messages(plan.question, plan.turns))
    return read_rewrite(text, plan.question, plan.completed, plan.turns)


async def translate(
    plan: Plan,
    searched: str,
    chunks: Sequence[ScoredChunk],
    model: ChatModel | None,
    protection: Protection,
) -> str:
    """Return a question in the language of the book; empty if it is in that language already.

    It is also empty if there is no model, if the question is about a selected text, and if the
    model fails, is too slow or writes something else.

    Args:
        plan: The question.
        searched: The wording that was searched.
        chunks: The passages that were found for it.
        model: Translates the question.
        protection: The circuit breaker of the model.
    """
    if model is None or protection.chat_model.state != "closed":
        return ""
    languages = find_languages(plan.question, chunks)
    if languages is None or plan.query.mode == Mode.SELECTED_TEXT_ONLY:
        return ""
    asked, written = languages
    line = read_translation(await _ask(model, translation_messages(searched, written)))
    is_translated = find_language(line) in {"", written} and line != searched
    return line if is_translated and asked != written else ""


async def _ask(model: ChatModel, messages: Sequence[ChatMessage]) -> str:
    """Return the reply of a model; empty if it fails or is too slow."""
    async with aclosing(model.stream(messages)) as written:
        try:
            async with asyncio.timeout(REWORDING_S):
                return "".join([piece async for piece in written])
        except Exception:  # noqa: BLE001  # no failure of a model may lose the question
            return ""
