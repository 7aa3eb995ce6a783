"""Let a model word a follow-up question so that it can be searched."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.conversations.rewriting import read_rewrite, rewrite_messages
from rag_pipeline.core.errors import AnswerTimeoutError, RagPipelineError
from rag_pipeline.core.protocols.chat import AsyncChatModel
from rag_pipeline.retrieval.protection.breaker import run_within

if TYPE_CHECKING:
    from rag_pipeline.answering.preparing import Plan
    from rag_pipeline.core.protocols.chat import ChatModel
    from rag_pipeline.retrieval.protection.limits import Protection

REWORDING_S: Final = 5.0
"""Seconds that a model has to word a question; then the rules' wording is searched."""


def reword(plan: Plan, model: ChatModel | None, protection: Protection) -> str:
    """Return the question to search: a model's wording of a follow-up, or the completed question.

    The completed question is returned if there is no model, if the question needs no earlier turn,
    and if the model fails, is too slow or writes something else.
    """
    if model is None or not _is_useful(plan, protection):
        return plan.completed
    written = model.stream(rewrite_messages(plan.question, plan.turns))
    try:
        text = run_within(REWORDING_S, lambda: "".join(written), _describe_late)
    except RagPipelineError:
        return plan.completed
    finally:
        with suppress(ValueError):  # a plain generator that is still read ends after its next piece
            written.close()
    return read_rewrite(text, plan.completed)


async def areword(plan: Plan, model: ChatModel | None, protection: Protection) -> str:
    """Do the same as `reword` while the event loop continues."""
    if model is None or not _is_useful(plan, protection):
        return plan.completed
    if not isinstance(model, AsyncChatModel):
        return await asyncio.to_thread(reword, plan, model, protection)
    messages = rewrite_messages(plan.question, plan.turns)
    async with aclosing(model.astream(messages)) as written:
        try:
            async with asyncio.timeout(REWORDING_S):
                text = "".join([piece async for piece in written])
        except (RagPipelineError, TimeoutError):
            return plan.completed
    return read_rewrite(text, plan.completed)


def _is_useful(plan: Plan, protection: Protection) -> bool:
    """Return True for a follow-up, unless the service of the model is failing."""
    return plan.is_follow_up and protection.chat_model.state == "closed"


def _describe_late(limit_s: float) -> AnswerTimeoutError:
    return AnswerTimeoutError(f"the question was not worded within {limit_s:g} s")
