"""Clusters of the questions that the book did not answer, each with the pages nearest to it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from rag_pipeline.core.errors import QueryError
from rag_pipeline.evaluation.feedback.ratings import BAD_RATING, is_unanswered
from rag_pipeline.retrieval.queries import Query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rag_pipeline.core.protocols.embedding import Embedder
    from rag_pipeline.core.protocols.question_log import LoggedAnswer, Rating
    from rag_pipeline.core.vectors import FloatMatrix
    from rag_pipeline.retrieval.models import RetrievalResult

SAME_SUBJECT: Final = 0.6
"""Lowest cosine of two questions of one cluster.

With the local model, 0.6 joined 74 of 150 pairs of paraphrases and 2 pairs of different questions;
0.5 joined 109 pairs and 53 wrong ones.
"""

MAX_QUESTIONS: Final = 2_000
"""The newest unanswered questions that are compared; the table of cosines grows by the square."""

RATED_BADLY: Final = "rated_badly"
"""The reason of answers that the book seemed to contain, but that were rated 1 or 2."""

ABOUT_SELECTION: Final = "selected_text_only"
"""The mode of questions about a text that the reader selected. The text is not logged."""

_MAX_CLUSTERS: Final = 30
_MAX_PAGES: Final = 3


@dataclass(frozen=True, slots=True)
class NearPage:
    """A section that a search for a question finds.

    Attributes:
        place: Title of the page and heading of the section.
        url: Address of the section; empty if unknown.
        similarity: Similarity to the question, 0 to 1.
    """

    place: str
    url: str
    similarity: float


@dataclass(frozen=True, slots=True)
class QuestionCluster:
    """Unanswered questions that may be about the same subject.

    Attributes:
        questions: The distinct questions; the one that is most similar to all others comes first.
        answer_ids: Ids of all answers to these questions, oldest first.
        by_reason: Number of the answers by reason, most frequent first.
        pages: At most 3 sections nearest to the first question, best first.
    """

    questions: tuple[str, ...]
    answer_ids: tuple[str, ...]
    by_reason: dict[str, int]
    pages: tuple[NearPage, ...] = ()


@dataclass(frozen=True, slots=True)
class UnansweredReport:
    """The questions that the book did not answer, or whose answers were rated 1 or 2.

    Attributes:
        count: Number of these answers.
        by_reason: Number of them by reason, such as `not_covered` or `rated_badly`, most frequent
            first.
        unlogged_count: Number of them whose question was not logged.
        clusters: At most 30 clusters, largest first. A cluster may consist of one question.
        answer_count: Number of all answers in the log.
        selection_count: Number of the unanswered questions about a selection. They are not
            grouped, because the selection is not logged.
        cluster_count: Number of all clusters.
        omitted_count: Number of the oldest unanswered questions that were not grouped, because
            there are more than `MAX_QUESTIONS`.
    """

    count: int
    by_reason: dict[str, int]
    unlogged_count: int
    clusters: tuple[QuestionCluster, ...]
    answer_count: int = 0
    selection_count: int = 0
    cluster_count: int = 0
    omitted_count: int = 0


def report_unanswered(
    answers: Sequence[LoggedAnswer],
    ratings: Sequence[Rating],
    embedder: Embedder,
    search: Callable[[Query], RetrievalResult],
) -> UnansweredReport:
    """Group the unanswered questions, and search the pages nearest to each group.

    Args:
        answers: The answers of the question log, oldest first.
        ratings: The ratings of the question log.
        embedder: The local model. `SAME_SUBJECT` holds for its cosines.
        search: Finds the passages for a query.
    """
    bad = {one.answer_id for one in ratings if one.rating <= BAD_RATING}
    chosen = [one for one in answers if is_unanswered(one) or one.answer_id in bad]
    logged = [one for one in chosen if _read_question(one)]
    whole_book = [one for one in logged if one.mode != ABOUT_SELECTION]
    clusters = cluster_questions(whole_book[-MAX_QUESTIONS:], embedder)
    return UnansweredReport(
        count=len(chosen),
        by_reason=_count_reasons(chosen),
        unlogged_count=len(chosen) - len(logged),
        clusters=tuple(
            replace(one, pages=_find_pages(one.questions[0], search))
            for one in clusters[:_MAX_CLUSTERS]
        ),
        answer_count=len(answers),
        selection_count=len(logged) - len(whole_book),
        cluster_count=len(clusters),
        omitted_count=max(0, len(whole_book) - MAX_QUESTIONS),
    )


def cluster_questions(answers: Sequence[LoggedAnswer], embedder: Embedder) -> list[QuestionCluster]:
    """Group answers whose questions are similar, largest group first.

    Groups are stars: every question has a cosine of at least `SAME_SUBJECT` with the first question
    of its group. Groups thus do not grow along chains of questions. For a follow-up, the search
    question is compared.
    """
    by_question: dict[str, list[LoggedAnswer]] = {}
    for one in answers:
        by_question.setdefault(_read_question(one), []).append(one)
    texts = list(by_question)
    if not texts:
        return []
    order = {one.answer_id: place for place, one in enumerate(answers)}
    vectors = np.stack([embedder.embed_query(text) for text in texts])
    clusters = []
    for star in _find_stars(vectors):
        group = [texts[place] for place in star]
        asked = [one for text in group for one in by_question[text]]
        asked.sort(key=lambda one: order[one.answer_id])
        ids = tuple(one.answer_id for one in asked)
        clusters.append(QuestionCluster(tuple(group), ids, _count_reasons(asked)))
    return sorted(clusters, key=lambda one: -len(one.answer_ids))


def _read_question(answer: LoggedAnswer) -> str:
    """Return the question that was searched, on one line; empty if it was not logged."""
    return " ".join((answer.search_question or answer.question or "").split())


def _count_reasons(answers: Iterable[LoggedAnswer]) -> dict[str, int]:
    found = Counter(one.reason if is_unanswered(one) else RATED_BADLY for one in answers)
    return dict(found.most_common())


def _find_stars(vectors: FloatMatrix) -> Iterable[list[int]]:
    """Yield groups of row numbers; the row with most neighbours that are left is the centre."""
    cosines = vectors @ vectors.T
    near = cosines >= SAME_SUBJECT
    np.fill_diagonal(near, val=True)
    left = np.ones(len(vectors), dtype=bool)
    sizes = near.sum(axis=1)  # neighbours that are left
    while left.any():
        centre = int(np.where(left, sizes, 0).argmax())
        star = np.flatnonzero(near[centre] & left)
        others = star[star != centre]
        yield [centre, *others[np.argsort(-cosines[centre, others], kind="stable")].tolist()]
        left[star] = False
        sizes -= near[:, star].sum(axis=1)  # each row leaves once, so all stars take n² steps


def _find_pages(question: str, search: Callable[[Query], RetrievalResult]) -> tuple[NearPage, ...]:
    try:
        chunks = search(Query(question, top_k=10)).chunks
    except QueryError:  # for example, a question of more characters than a search accepts
        return ()
    found: dict[str, NearPage] = {}
    for chunk in chunks:
        place, url = chunk.citation.place, chunk.citation.url
        found.setdefault(url or place, NearPage(place, url, chunk.score))
    return tuple(found.values())[:_MAX_PAGES]
