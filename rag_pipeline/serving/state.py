"""What all routes of the service share for its whole life."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

from anyio import CapacityLimiter, to_thread
from fastapi import Request  # noqa: TC002  # FastAPI reads the annotation at run time

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_pipeline.answering.assistant import Assistant
    from rag_pipeline.core.protocols import LoggedAnswer, Rating
    from rag_pipeline.core.settings import Settings

LOG_THREADS: Final = 4
"""Threads for ratings and deletions, which wait for the question log."""

_Result = TypeVar("_Result")


class AnswerLog(Protocol):
    """A writer of the question log. Recording an answer never waits and never raises."""

    def record(self, answer: LoggedAnswer) -> None:
        """Queue an answer for the log."""

    def rate(self, rating: Rating) -> bool:
        """Store a rating; return False if the answer is not in the log."""

    def delete(self, *, answer_id: str | None = None, conversation_id: str | None = None) -> int:
        """Delete one answer or a conversation; return the number of deleted answers."""


@dataclass(frozen=True, slots=True)
class Service:
    """The parts of a running service.

    Attributes:
        assistant: Answers the questions.
        settings: The settings of the process.
        log: The question log; None if nothing is logged.
        metrics: The metrics of the service; None if nothing is measured.
        readiness: The state that `/readyz` reports; None if it is not watched.
        log_threads: Limits the threads that wait for the question log.
    """

    assistant: Assistant
    settings: Settings
    log: AnswerLog | None = None
    metrics: Any = None
    readiness: Any = None
    log_threads: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(LOG_THREADS))

    async def run_log(self, action: Callable[[], _Result]) -> _Result:
        """Run an action on the question log in one of the log's threads.

        A slow log thus occupies none of the threads that serve the website.
        """
        return await to_thread.run_sync(action, limiter=self.log_threads)


def get_service(request: Request) -> Service:
    """Return the service that a request was sent to."""
    return cast("Service", request.app.state.service)
