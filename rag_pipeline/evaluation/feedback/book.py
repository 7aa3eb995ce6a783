"""The question log of one book: reading it, and comparing its questions with the book's pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_pipeline.adapters.question_log.opening import open_question_log
from rag_pipeline.core.errors import QueryError
from rag_pipeline.evaluation.feedback.unanswered import UnansweredReport, report_unanswered
from rag_pipeline.evaluation.golden_entry import choose_half

if TYPE_CHECKING:
    from rag_pipeline.core.models import JsonValue, ParsedDoc
    from rag_pipeline.core.protocols.question_log import LoggedAnswer, Rating
    from rag_pipeline.core.settings import Settings


@dataclass(frozen=True, slots=True)
class LogEntries:
    """The answers and ratings of a question log, oldest answer first."""

    answers: tuple[LoggedAnswer, ...]
    ratings: tuple[Rating, ...]


def read_log(settings: Settings) -> LogEntries | None:
    """Return the entries of the question log, or None if QUESTION_LOG_DAYS is 0.

    Raises:
        ConfigurationError: QUESTION_LOG_URL is not valid.
        MissingDependencyError: A package of the extra `serve` is not installed.
        QuestionLogError: The log cannot be read.
    """
    log = open_question_log(settings)
    if log is None:
        return None
    try:
        return LogEntries(tuple(log.read_answers()), tuple(log.read_ratings()))
    finally:
        log.close()


def group_unanswered(settings: Settings, entries: LogEntries) -> UnansweredReport:
    """Group the unanswered questions of the log, with the nearest pages of the book.

    Raises:
        StoreError: The collection is missing or cannot be read.
    """
    from rag_pipeline.adapters.embedders.local import LocalEmbedder  # noqa: PLC0415  # loads a model
    from rag_pipeline.retrieval import open_retriever  # noqa: PLC0415  # loads the clients

    with open_retriever(settings) as retriever:
        return report_unanswered(
            entries.answers, entries.ratings, LocalEmbedder(), retriever.retrieve
        )
