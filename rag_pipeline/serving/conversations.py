"""The latest turns of conversations, kept in memory."""

from __future__ import annotations

import time
import uuid
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.conversations.history import MAX_TURNS

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_pipeline.answering.models import Turn

MAX_CONVERSATIONS: Final = 1_000
MAX_CONVERSATION_CHARS: Final = 60_000
MAX_TOTAL_CHARS: Final = 10_000_000
"""Characters of all conversations together; they need at most 40 MB."""

MAX_AGE_S: Final = 3600.0


@dataclass(slots=True)
class _Conversation:
    """The turns of one conversation by the id of their answer, oldest first."""

    used_at: float = 0.0
    turns: dict[str, Turn] = field(default_factory=dict)
    char_count: int = 0

    def add(self, answer_id: str, turn: Turn) -> None:
        """Add a turn and drop the oldest ones beyond the limits.

        Turns about the same selection share its text, which is counted once.
        """
        for known in self.turns.values():
            if known.selected_text == turn.selected_text:
                turn = replace(turn, selected_text=known.selected_text)
        self.turns[answer_id] = turn
        self._count()
        while len(self.turns) > MAX_TURNS or self.char_count > MAX_CONVERSATION_CHARS:
            self.remove(next(iter(self.turns)))

    def remove(self, answer_id: str) -> bool:
        """Remove a turn; return False if the answer is unknown."""
        if self.turns.pop(answer_id, None) is None:
            return False
        self._count()
        return True

    def _count(self) -> None:
        turns = self.turns.values()
        selections = {turn.selected_text for turn in turns if turn.selected_text}
        self.char_count = sum(len(turn.question) + len(turn.answer) for turn in turns)
        self.char_count += sum(map(len, selections))


class Conversations:
    """The turns of the conversations that were used last. Several threads can share the object.

    Args:
        clock: Returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._known: OrderedDict[str, _Conversation] = OrderedDict()
        self._char_count = 0

    def resume(self, conversation_id: str | None) -> tuple[str, tuple[Turn, ...]]:
        """Return the id and the turns of a conversation, oldest first.

        An id that is not remembered begins a new conversation with a new random id, so that nobody
        can choose an id that another reader uses or guesses.
        """
        with self._lock:
            self._expire()
            known = self._known.get(conversation_id) if conversation_id else None
            if conversation_id is None or known is None:
                return uuid.uuid4().hex, ()
            return conversation_id, tuple(known.turns.values())

    def add(self, conversation_id: str, answer_id: str, turn: Turn) -> None:
        """Add a turn. The oldest turns and conversations beyond the limits are dropped."""
        with self._lock:
            self._expire()
            changed = self._pop(conversation_id) or _Conversation()
            changed.add(answer_id, turn)
            self._put(conversation_id, changed, self._clock())
            while len(self._known) > MAX_CONVERSATIONS or self._char_count > MAX_TOTAL_CHARS:
                self._pop(next(iter(self._known)))

    def delete(self, conversation_id: str) -> bool:
        """Delete a conversation; return False if it is unknown."""
        with self._lock:
            return self._pop(conversation_id) is not None

    def delete_answer(self, answer_id: str) -> bool:
        """Delete the turn of an answer; return False if the answer is unknown."""
        with self._lock:
            for conversation_id, known in self._known.items():
                before = known.char_count
                if known.remove(answer_id):
                    self._char_count += known.char_count - before
                    if not known.turns:
                        del self._known[conversation_id]
                    return True
            return False

    def _pop(self, conversation_id: str) -> _Conversation | None:
        known = self._known.pop(conversation_id, None)
        if known is not None:
            self._char_count -= known.char_count
        return known

    def _put(self, conversation_id: str, conversation: _Conversation, used_at: float) -> None:
        if conversation.turns:  # a turn that exceeds the limit by itself is not kept
            conversation.used_at = used_at
            self._known[conversation_id] = conversation
            self._char_count += conversation.char_count

    def _expire(self) -> None:
        oldest = self._clock() - MAX_AGE_S
        while self._known and next(iter(self._known.values())).used_at < oldest:
            self._pop(next(iter(self._known)))
