"""The latest turns of conversations, kept in memory."""

from __future__ import annotations

import time
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.conversations.history import MAX_TURNS

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_pipeline.answering.models import Turn

MAX_CONVERSATIONS: Final = 1_000
MAX_AGE_S: Final = 3600.0


class Conversations:
    """The turns of the conversations that were used last. Several threads can share the object.

    Args:
        clock: Returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._turns: OrderedDict[str, tuple[float, dict[str, Turn]]] = OrderedDict()

    def read(self, conversation_id: str) -> tuple[Turn, ...]:
        """Return the turns of a conversation, oldest first; empty if it is unknown or too old."""
        with self._lock:
            self._expire()
            return tuple(self._turns.get(conversation_id, (0.0, {}))[1].values())

    def add(self, conversation_id: str, answer_id: str, turn: Turn) -> None:
        """Add a turn. The oldest turns and conversations beyond the limits are dropped."""
        with self._lock:
            self._expire()
            _, turns = self._turns.pop(conversation_id, (0.0, {}))
            turns[answer_id] = turn
            if len(turns) > MAX_TURNS:
                del turns[next(iter(turns))]
            self._turns[conversation_id] = (self._clock(), turns)
            if len(self._turns) > MAX_CONVERSATIONS:
                self._turns.popitem(last=False)

    def delete(self, conversation_id: str) -> bool:
        """Delete a conversation; return False if it is unknown."""
        with self._lock:
            return self._turns.pop(conversation_id, None) is not None

    def delete_answer(self, answer_id: str) -> bool:
        """Delete the turn of an answer; return False if the answer is unknown."""
        with self._lock:
            for conversation_id, (_, turns) in self._turns.items():
                if turns.pop(answer_id, None) is not None:
                    if not turns:
                        del self._turns[conversation_id]
                    return True
            return False

    def _expire(self) -> None:
        oldest = self._clock() - MAX_AGE_S
        while self._turns and next(iter(self._turns.values()))[0] < oldest:
            self._turns.popitem(last=False)
