"""The question log of one book: reading it, and comparing its questions with the book's pages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.adapters.question_log.opening import open_question_log
from rag_pipeline.core.errors import QueryError
from rag_pipeline.evaluation.feedback.unanswered import (
    ABOUT_SELECTION,
    UnansweredReport,
    report_unanswered,
)
from rag_pipeline.evaluation.golden_entry import choose_half

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.models import JsonValue, ParsedDoc
    from rag_pipeline.core.protocols.question_log import LoggedAnswer, Rating
    from rag_pipeline.core.settings import Settings

_MAX_ID_WORDS: Final = 5


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


def draft_entry(
    entries: LogEntries, answer_id: str, pages: Sequence[ParsedDoc]
) -> dict[str, JsonValue]:
    """Return a golden-set entry for a logged question, as a suggestion to check.

    Its expected sections are those that the answer cited; a refusal has none. Retrieval found them,
    so the author must check each of them in the book.

    Args:
        entries: The entries of the question log.
        answer_id: Id of the answer to the question.
        pages: All documents of the book.

    Raises:
        QueryError: The log has no such answer, or its question was not logged, or the question is
            about a selection, which is never logged.
    """
    found = [one for one in entries.answers if one.answer_id == answer_id]
    if not found:
        raise QueryError(f"the question log has no answer {answer_id[:80]!r}")
    if not found[0].question:
        raise QueryError(
            "the text of this question was not logged. LOG_QUESTIONS=true logs the text of later "
            "questions"
        )
    if found[0].mode == ABOUT_SELECTION:
        raise QueryError("this question is about a selected text, which is not logged")
    question = " ".join((found[0].search_question or found[0].question).split())
    words = re.findall(r"[^\W_]+", question.casefold())
    name = "-".join(words[:_MAX_ID_WORDS]) or "new"
    return {
        "id": name,
        "question": question,
        "category": "fact",
        "all_of": False,
        # The sections that a refusal names are related to the question, but do not answer it.
        "expected": [] if found[0].kind == "refused" else _find_sections(found[0].sources, pages),
        "split": choose_half(name),
    }


def _find_sections(urls: Sequence[str], pages: Sequence[ParsedDoc]) -> list[JsonValue]:
    """Return the sections of the book that have the URLs; unknown URLs are left out."""
    by_page = {page.document.url.rstrip("/"): page.document for page in pages}
    expected: list[JsonValue] = []
    for url in urls:
        address, _, anchor = url.partition("#")
        document = by_page.get(address.rstrip("/"))
        if document is None:
            continue
        texts = [one.text for one in document.headings if anchor and one.anchor == anchor]
        heading = texts[0] if texts else document.title
        section: JsonValue = {"doc_path": str(document.doc_path), "section_heading": heading}
        if section not in expected:
            expected.append(section)
    return expected
