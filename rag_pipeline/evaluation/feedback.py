"""The question log of one book: what readers asked and rated, and what was not answered.

All results are rows of tables, whose columns have the names that the Dagster UI shows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from rag_pipeline.adapters.database.questions import open_question_log
from rag_pipeline.answering.models import Level
from rag_pipeline.core.errors import QueryError
from rag_pipeline.evaluation.measures import find_interval
from rag_pipeline.evaluation.pages import shorten
from rag_pipeline.retrieval.queries import Mode, Query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rag_pipeline.core.protocols import Embedder, LoggedAnswer, Rating
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.core.vectors import FloatMatrix
    from rag_pipeline.retrieval.models import RetrievalResult

Row: TypeAlias = "dict[str, str | float]"
Figure: TypeAlias = "float | list[Row]"

GOOD_RATING: Final = 4
"""The lowest rating of a helpful answer."""

BAD_RATING: Final = 2
"""The highest rating of an answer that did not help."""

SAME_SUBJECT: Final = 0.6
"""Lowest cosine of two questions of one cluster.

With the local model, 0.6 joined 74 of 150 pairs of paraphrases and 2 pairs of different questions;
0.5 joined 109 pairs and 53 wrong ones.
"""

MAX_QUESTIONS: Final = 2_000
"""The newest unanswered questions that are compared; the table of cosines grows by the square."""

RATED_BADLY: Final = "rated_badly"
"""The reason of answers that the book seemed to contain, but that were rated 1 or 2."""

_LEVELS: Final = {level.value: level.words for level in Level}
"""The words for each level of answers."""

_REASONS: Final = {
    "not_covered": "the book does not cover it",
    "uncertain": "only the closest passages were shown",
    "no_words": "the book has no word of the question",
    "no_passages": "no passage matched the filters",
    "model_declined": "the model found no answer in the passages",
    "unrelated_to_selection": "the selection does not answer it",
    RATED_BADLY: "answered, but rated 1 or 2",
}
_MAX_CLUSTERS: Final = 30
_MAX_PAGES: Final = 3
_MAX_ROWS: Final = 10
_SHOWN_QUESTIONS: Final = 8
_SHOWN_CHARS: Final = 300


@dataclass(frozen=True, slots=True)
class LogEntries:
    """The answers and ratings of a question log, oldest answer first."""

    answers: tuple[LoggedAnswer, ...]
    ratings: tuple[Rating, ...]

    def pair(self) -> list[tuple[LoggedAnswer, Rating | None]]:
        """Return each answer with its rating, or None if it was not rated."""
        given = {one.answer_id: one for one in self.ratings}
        return [(one, given.get(one.answer_id)) for one in self.answers]


def read_log(settings: Settings) -> LogEntries | None:
    """Return the entries of the question log, or None if QUESTION_LOG_DAYS is 0.

    Raises:
        ConfigurationError: QUESTION_LOG_URL is not valid.
        MissingDependencyError: A package of the extra `serve` is not installed.
        QuestionLogError: The log cannot be read.
    """
    log = open_question_log(settings, begins_again=False)
    if log is None:
        return None
    try:
        return LogEntries(tuple(log.read_answers()), tuple(log.read_ratings()))
    finally:
        log.close()


def describe_feedback(entries: LogEntries) -> dict[str, Figure]:
    """Return numbers and tables of the ratings of a question log, by name.

    `helpful_share` is the share of ratings that are 4 or 5 (SC-005), from `helpful_low` to
    `helpful_high` with 95% confidence. Without ratings, the three are left out. The tables have the
    answers by level, the sections with most bad ratings, the tags of ratings, and the newest notes
    of readers.
    """
    levels = Counter(one.level for one in entries.answers)
    rated = [(rating, answer) for answer, rating in entries.pair() if rating]
    rated.sort(key=lambda one: one[0].rated_at, reverse=True)
    tags = Counter(tag for rating, _ in rated for tag in rating.tags)
    notes = [(rating, answer) for rating, answer in rated if rating.note.strip()]
    found: dict[str, Figure] = {
        "levels": [
            {"how questions were answered": _LEVELS.get(level, level), "answers": times}
            for level, times in levels.items()
        ],
        "worst_sections": _list_worst(rated),
        "tags": [{"tag": tag, "ratings": times} for tag, times in tags.most_common()],
        "notes": [
            {
                "note": shorten(rating.note, _SHOWN_CHARS),
                "rating": rating.rating,
                "question": shorten(answer.question or "", _SHOWN_CHARS),
            }
            for rating, answer in notes[:_MAX_ROWS]
        ],
        "answer_count": len(entries.answers),
        "unanswered_count": sum(map(is_unanswered, entries.answers)),
        "rating_count": len(rated),
    }
    if helpful := find_interval([rating.rating >= GOOD_RATING for rating, _ in rated]):
        found["helpful_share"] = helpful.mean
        found |= {"helpful_low": helpful.low, "helpful_high": helpful.high}
    return found


def is_unanswered(answer: LoggedAnswer) -> bool:
    """Return True if the book did not fully answer the question."""
    return answer.level in {"closest_passages", "not_covered"}


def _list_worst(rated: Sequence[tuple[Rating, LoggedAnswer]]) -> list[Row]:
    """Return the sections with bad ratings, most of these first.

    Refusals do not count, as they cite no section.
    """
    by_url: dict[str, list[int]] = defaultdict(list)
    for rating, answer in rated:
        if answer.kind != "refused":
            for url in dict.fromkeys(answer.sources):
                by_url[url].append(rating.rating)
    rows: list[Row] = [
        {
            "section": shorten(url, _SHOWN_CHARS),
            "rated 1 or 2": sum(value <= BAD_RATING for value in values),
            "ratings": len(values),
            "mean rating": sum(values) / len(values),
        }
        for url, values in sorted(by_url.items())
        if min(values) <= BAD_RATING
    ]
    rows.sort(key=lambda row: (-float(row["rated 1 or 2"]), row["mean rating"]))
    return rows[:_MAX_ROWS]


@dataclass(frozen=True, slots=True)
class QuestionCluster:
    """Unanswered questions that may be about the same subject.

    Attributes:
        questions: The distinct questions; the one that is most similar to all others comes first.
        answers: All answers to these questions, oldest first.
        pages: At most 3 sections that a search for the first question finds, best first: title,
            heading and similarity to the question, 0 to 1.
    """

    questions: tuple[str, ...]
    answers: tuple[LoggedAnswer, ...]
    pages: tuple[str, ...]


def find_unanswered(entries: LogEntries) -> list[LoggedAnswer]:
    """Return the answers that did not fully answer, or were rated 1 or 2, oldest first."""
    return [
        answer
        for answer, rating in entries.pair()
        if is_unanswered(answer) or (rating and rating.rating <= BAD_RATING)
    ]


def describe_unanswered(settings: Settings, entries: LogEntries) -> dict[str, Figure]:
    """Return numbers and tables of the unanswered questions, by name.

    The tables have the reasons, and groups of similar questions with the nearest sections.

    Raises:
        StoreError: The collection is missing or cannot be read.
    """
    from rag_pipeline.adapters.embedders.local import LocalEmbedder  # noqa: PLC0415  # loads a model
    from rag_pipeline.retrieval import open_retriever  # noqa: PLC0415  # loads the clients

    answers = find_unanswered(entries)
    with open_retriever(settings) as retriever:
        clusters = cluster_questions(answers, LocalEmbedder(), retriever.retrieve)
    return {
        "reasons": [
            {"reason": reason, "answers": times} for reason, times in count_reasons(answers)
        ],
        "groups": [describe_group(cluster) for cluster in clusters],
        "unanswered_count": len(answers),
        "grouped_count": sum(len(cluster.answers) for cluster in clusters),
    }


def cluster_questions(
    answers: Sequence[LoggedAnswer],
    embedder: Embedder,
    search: Callable[[Query], RetrievalResult],
) -> list[QuestionCluster]:
    """Group answers whose questions are similar; return at most 30 groups, largest first.

    Groups are stars: every question has a cosine of at least `SAME_SUBJECT` with the first question
    of its group. Groups thus do not grow along chains of questions. For a follow-up, the search
    question is compared. Questions about a selection and questions that were not logged are left
    out.

    Args:
        answers: The answers, oldest first.
        embedder: The local model. `SAME_SUBJECT` holds for its cosines.
        search: Finds the passages for a query.
    """
    asked = [one for one in answers if _read_question(one) and one.mode != Mode.SELECTED_TEXT_ONLY]
    asked = asked[-MAX_QUESTIONS:]
    by_question: dict[str, list[int]] = defaultdict(list)
    for place, one in enumerate(asked):
        by_question[_read_question(one)].append(place)
    texts = list(by_question)
    if not texts:
        return []
    vectors = np.stack([embedder.embed_query(text) for text in texts])
    groups = []
    for star in _find_stars(vectors):
        questions = tuple(texts[place] for place in star)
        places = sorted(place for text in questions for place in by_question[text])
        groups.append((questions, tuple(asked[place] for place in places)))
    groups.sort(key=lambda group: -len(group[1]))
    return [
        QuestionCluster(questions, own, _find_pages(questions[0], search))
        for questions, own in groups[:_MAX_CLUSTERS]
    ]


def _read_question(answer: LoggedAnswer) -> str:
    """Return the question that was searched, on one line; empty if it was not logged."""
    return " ".join((answer.search_question or answer.question or "").split())


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


def _find_pages(question: str, search: Callable[[Query], RetrievalResult]) -> tuple[str, ...]:
    try:
        chunks = search(Query(question, top_k=10)).chunks
    except QueryError:  # for example, a question of more characters than a search accepts
        return ()
    found: dict[str, str] = {}
    for chunk in chunks:
        cited = chunk.citation
        found.setdefault(cited.url or cited.place, f"{cited.place} ({chunk.score:.2f})")
    return tuple(found.values())[:_MAX_PAGES]


def describe_group(cluster: QuestionCluster) -> Row:
    """Return the row of a group of unanswered questions."""
    first, *others = (
        shorten(question, _SHOWN_CHARS) for question in cluster.questions[:_SHOWN_QUESTIONS]
    )
    left = len(cluster.questions) - _SHOWN_QUESTIONS
    others += [f"and {left} more wordings"] if left > 0 else []
    reasons = (f"{reason} ({times})" for reason, times in count_reasons(cluster.answers))
    return {
        "question": first,
        "asked": len(cluster.answers),
        "reasons": ", ".join(reasons),
        "other wordings": "; ".join(others),
        "nearest sections": "; ".join(cluster.pages),
    }


def count_reasons(answers: Iterable[LoggedAnswer]) -> list[tuple[str, int]]:
    """Return the reasons in words with their numbers of answers, most frequent first."""
    found = Counter(one.reason if is_unanswered(one) else RATED_BADLY for one in answers)
    return [(_REASONS.get(reason, reason), times) for reason, times in found.most_common()]
