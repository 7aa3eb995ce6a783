"""Let a model word a follow-up question so that it can be searched."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.conversations.history import read_rewrite, rewrite_messages

if TYPE_CHECKING:
    from rag_pipeline.answering.preparing import Plan
    from rag_pipeline.core.protocols import ChatModel
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
    messages = rewrite_messages(plan.question, plan.turns)
    async with aclosing(model.stream(messages)) as written:
        try:
            async with asyncio.timeout(REWORDING_S):
                text = "".join([piece async for piece in written])
        except Exception:  # noqa: BLE001  # no failure of a model may lose the question
            return plan.completed
    return read_rewrite(text, plan.question, plan.completed, plan.turns)
