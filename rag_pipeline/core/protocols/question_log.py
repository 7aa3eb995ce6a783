"""Protocol of the question log: the answers that were given, and their ratings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class LoggedAnswer:
    """One answer that the service gave.

    Attributes:
        answer_id: Id of the answer.
        conversation_id: Id of the conversation that the answer belongs to.
        asked_at: The time of the question, in UTC.
        mode: `normal` or `selected_text_only`.
        kind: `generated`, `extracted`, `refused` or `reply`.
        level: `answered`, `closest_passages` or `not_covered`.
        reason: Why the passages suffice or not, such as `sufficient` or `not_covered`.
        question: The question as asked; None if questions are not logged.
        search_question: What was searched instead of the question; None if nothing else was, or if
            questions are not logged.
        confidence: Estimated probability that the passages contain the answer; None if unknown.
        sources: URLs of the sections that were cited, or that a refusal suggested, best first.
        model: Name of the model that wrote the answer; None if none did.
        index_id: Id of the collection that was searched.
        latency_ms: Milliseconds from the request to the complete answer.
    """

    answer_id: str
    conversation_id: str
    asked_at: datetime
    mode: str
    kind: str
    level: str
    reason: str
    question: str | None = None
    search_question: str | None = None
    confidence: float | None = None
    sources: tuple[str, ...] = ()
    model: str | None = None
    index_id: str = ""
    latency_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Rating:
    """A reader's rating of one answer. A later rating of the same answer replaces it.

    Attributes:
        answer_id: Id of the answer.
        rated_at: The time of the rating, in UTC.
        rating: 1 (bad) to 5 (good). A thumb up counts as 5, a thumb down as 1.
        tags: Short labels, such as `wrong_section`.
        note: What the reader wrote; may be empty.
    """

    answer_id: str
    rated_at: datetime
    rating: int
    tags: tuple[str, ...] = ()
    note: str = ""


class QuestionLog(Protocol):
    """The log of answers and ratings. All methods may raise QuestionLogError."""

    def add_answers(self, answers: Sequence[LoggedAnswer]) -> None:
        """Store answers. An answer with an id that is stored already is replaced."""

    def add_rating(self, rating: Rating) -> bool:
        """Store a rating and return True, or return False if the answer is not in the log."""

    def read_answers(self, since: datetime | None = None) -> list[LoggedAnswer]:
        """Return the answers asked at or after a time, oldest first; None returns all."""

    def read_ratings(self, since: datetime | None = None) -> list[Rating]:
        """Return the ratings of the answers asked at or after a time, oldest answer first."""

    def delete(self, *, answer_id: str | None = None, conversation_id: str | None = None) -> int:
        """Delete one answer or all answers of a conversation, with ratings; return their number."""

    def close(self) -> None:
        """Close the connection to the database. A second call does nothing."""
