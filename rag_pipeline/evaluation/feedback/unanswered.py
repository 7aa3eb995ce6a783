"""Clusters of the questions that the book did not answer, each with the pages nearest to it."""

from __future__ import annotations

from dataclasses import dataclass
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
    from rag_pipeline.retrieval.models import Citation, RetrievalResult

SAME_SUBJECT: Final = 0.6
"""Lowest cosine of two questions of one cluster.

With the local model, 0.6 joined 74 of 150 pairs of paraphrases and 2 pairs of different questions;
0.5 joined 109 pairs and 53 wrong ones.
"""

MAX_QUESTIONS: Final = 2_000
"""The newest unanswered questions that are compared; the table of cosines grows by the square."""

_MAX_CLUSTERS: Final = 20
_MAX_PAGES: Final = 3


@dataclass(frozen=True, slots=True)
class QuestionCluster:
    """Unanswered questions that may be about the same subject.

    Attributes:
        questions: The distinct questions; the one that is most similar to all others comes first.
        answer_ids: Ids of all answers to these questions, oldest first.
        pages: The sections nearest to the first question, best first.
    """

    questions: tuple[str, ...]
    answer_ids: tuple[str, ...]
    pages: tuple[Citation, ...] = ()


@dataclass(frozen=True, slots=True)
class UnansweredReport:
    """The questions that the book did not answer, or whose answers were rated 1 or 2.

    Attributes:
        count: Number of these answers.
        by_reason: Number of them by level and reason, or `rated 1 or 2`, most frequent first.
        unlogged_count: Number of them whose question was not logged.
        clusters: At most 20 clusters, largest first. A cluster may consist of one question.
    """

    count: int
    by_reason: dict[str, int]
    unlogged_count: int
    clusters: tuple[QuestionCluster, ...]


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
    counts: dict[str, int] = {}
    for one in chosen:
        reason = f"{one.level}: {one.reason}" if is_unanswered(one) else "rated 1 or 2"
        counts[reason] = counts.get(reason, 0) + 1
    logged = [one for one in chosen if one.question and one.question.strip()]
    clusters = cluster_questions(logged[-MAX_QUESTIONS:], embedder)[:_MAX_CLUSTERS]
    return UnansweredReport(
        count=len(chosen),
        by_reason=dict(sorted(counts.items(), key=lambda item: -item[1])),
        unlogged_count=len(chosen) - len(logged),
        clusters=tuple(
            QuestionCluster(one.questions, one.answer_ids, _find_pages(one.questions[0], search))
            for one in clusters
        ),
    )


def cluster_questions(answers: Sequence[LoggedAnswer], embedder: Embedder) -> list[QuestionCluster]:
    """Group answers whose questions are similar, largest group first.

    Groups are stars: every question has a cosine of at least `SAME_SUBJECT` with the first question
    of its group. Groups thus do not grow along chains of questions. For a follow-up, the search
    question is compared.
    """
    ids: dict[str, list[str]] = {}
    for one in answers:
        text = " ".join((one.search_question or one.question or "").split())
        ids.setdefault(text, []).append(one.answer_id)
    texts = list(ids)
    if not texts:
        return []
    vectors = np.stack([embedder.embed_query(text) for text in texts])
    groups = [[texts[place] for place in star] for star in _find_stars(vectors)]
    clusters = [
        QuestionCluster(tuple(group), tuple(name for text in group for name in ids[text]))
        for group in groups
    ]
    return sorted(clusters, key=lambda one: -len(one.answer_ids))


def _find_stars(vectors: FloatMatrix) -> Iterable[list[int]]:
    """Yield groups of row numbers; the row with most neighbours that are left is the centre."""
    cosines = vectors @ vectors.T
    near = cosines >= SAME_SUBJECT
    np.fill_diagonal(near, val=True)
    left = np.ones(len(vectors), dtype=bool)
    while left.any():
        sizes = np.where(left, (near & left).sum(axis=1), 0)
        centre = int(sizes.argmax())
        star = np.flatnonzero(near[centre] & left)
        others = star[star != centre]
        yield [centre, *others[np.argsort(-cosines[centre, others], kind="stable")].tolist()]
        left[star] = False


def _find_pages(question: str, search: Callable[[Query], RetrievalResult]) -> tuple[Citation, ...]:
    try:
        hits = search(Query(question, top_k=10)).chunks
    except QueryError:  # for example, a question of more characters than a search accepts
        return ()
    by_place = {(hit.citation.url or hit.citation.place): hit.citation for hit in hits}
    return tuple(by_place.values())[:_MAX_PAGES]
