"""The question log of one book: what readers asked and rated, and what was not answered."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from rag_pipeline.adapters.database.questions import open_question_log
from rag_pipeline.answering.models import Level
from rag_pipeline.core.errors import QueryError
from rag_pipeline.evaluation.measures import Interval, compute, count, share, tabulate
from rag_pipeline.evaluation.pages import Block, Items, Section, Table, shorten
from rag_pipeline.retrieval.queries import Mode, Query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rag_pipeline.core.protocols import Embedder, LoggedAnswer, Rating
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.core.vectors import FloatMatrix
    from rag_pipeline.retrieval.models import RetrievalResult


GOOD_RATING: Final = 4
"""The lowest rating of a helpful answer."""

BAD_RATING: Final = 2
"""The highest rating of an answer that did not help."""

_MAX_SECTIONS: Final = 10
_MAX_NOTES: Final = 10


@dataclass(frozen=True, slots=True)
class LogEntries:
    """The answers and ratings of a question log, oldest answer first."""

    answers: tuple[LoggedAnswer, ...]
    ratings: tuple[Rating, ...]

    def pair(self) -> list[tuple[LoggedAnswer, Rating | None]]:
        """Return each answer with its rating, or None if it was not rated."""
        given = {one.answer_id: one for one in self.ratings}
        return [(one, given.get(one.answer_id)) for one in self.answers]


@dataclass(frozen=True, slots=True)
class LogFigures:
    """The measures of a question log, over its answers with their ratings.

    Attributes:
        answer_count: Number of answers in the log.
        unanswered_count: Number of answers at the level `closest_passages` or `not_covered`.
        rating_count: Number of rated answers.
        helpful: Share of ratings that are 4 or 5 (SC-005); None without ratings.
    """

    answer_count: int = count("answers in the log", lambda _: True)
    unanswered_count: int = count("not fully answered", lambda one: is_unanswered(one[0]))
    rating_count: int = count("ratings", lambda one: one[1] is not None)
    helpful: Interval | None = share(
        "ratings of 4 or 5 (SC-005)",
        lambda one: [one[1].rating >= GOOD_RATING] if one[1] else [],
        "at least 0.80",
    )

    def list_numbers(self) -> dict[str, float]:
        """Return the numbers by name. The share and its interval are left out without ratings."""
        numbers: dict[str, float] = {
            "answer_count": self.answer_count,
            "unanswered_count": self.unanswered_count,
            "rating_count": self.rating_count,
        }
        if self.helpful is not None:
            numbers |= {
                "helpful_share": self.helpful.mean,
                "helpful_low": self.helpful.low,
                "helpful_high": self.helpful.high,
            }
        return numbers


def is_unanswered(answer: LoggedAnswer) -> bool:
    """Return True if the book did not fully answer the question."""
    return answer.level in {"closest_passages", "not_covered"}


SAME_SUBJECT: Final = 0.6
"""Lowest cosine of two questions of one cluster.

With the local model, 0.6 joined 74 of 150 pairs of paraphrases and 2 pairs of different questions;
0.5 joined 109 pairs and 53 wrong ones.
"""

MAX_QUESTIONS: Final = 2_000
"""The newest unanswered questions that are compared; the table of cosines grows by the square."""

RATED_BADLY: Final = "rated_badly"
"""The reason of answers that the book seemed to contain, but that were rated 1 or 2."""

_MAX_CLUSTERS: Final = 30
_MAX_PAGES: Final = 3


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
    pages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnansweredReport:
    """The questions that the book did not answer, or whose answers were rated 1 or 2.

    Attributes:
        answers: These answers, oldest first.
        answer_count: Number of all answers in the log.
        clusters: At most 30 clusters, largest first. A cluster may consist of one question.
            Questions about a selection and questions that were not logged are in none.
    """

    answers: tuple[LoggedAnswer, ...]
    answer_count: int
    clusters: tuple[QuestionCluster, ...]

    @property
    def grouped_count(self) -> int:
        """Number of the answers whose questions are in a cluster."""
        return sum(len(cluster.answers) for cluster in self.clusters)


def report_unanswered(
    entries: LogEntries,
    embedder: Embedder,
    search: Callable[[Query], RetrievalResult],
) -> UnansweredReport:
    """Group the unanswered questions, and search the pages nearest to each group.

    Args:
        entries: The entries of the question log.
        embedder: The local model. `SAME_SUBJECT` holds for its cosines.
        search: Finds the passages for a query.
    """
    chosen = tuple(
        answer
        for answer, rating in entries.pair()
        if is_unanswered(answer) or (rating and rating.rating <= BAD_RATING)
    )
    asked = [one for one in chosen if _read_question(one) and one.mode != Mode.SELECTED_TEXT_ONLY]
    clusters = cluster_questions(asked[-MAX_QUESTIONS:], embedder)[:_MAX_CLUSTERS]
    return UnansweredReport(
        chosen,
        len(entries.answers),
        tuple(replace(one, pages=_find_pages(one.questions[0], search)) for one in clusters),
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
        clusters.append(QuestionCluster(tuple(group), tuple(asked)))
    return sorted(clusters, key=lambda one: -len(one.answers))


def _read_question(answer: LoggedAnswer) -> str:
    """Return the question that was searched, on one line; empty if it was not logged."""
    return " ".join((answer.search_question or answer.question or "").split())


def _count_reasons(answers: Iterable[LoggedAnswer]) -> list[tuple[str, int]]:
    """Return the reasons in words with their numbers of answers, most frequent first."""
    found = Counter(one.reason if is_unanswered(one) else RATED_BADLY for one in answers)
    return [(_REASONS.get(reason, reason), times) for reason, times in found.most_common()]


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


def group_unanswered(settings: Settings, entries: LogEntries) -> UnansweredReport:
    """Group the unanswered questions of the log, with the nearest pages of the book.

    Raises:
        StoreError: The collection is missing or cannot be read.
    """
    from rag_pipeline.adapters.embedders.local import LocalEmbedder  # noqa: PLC0415  # loads a model
    from rag_pipeline.retrieval import open_retriever  # noqa: PLC0415  # loads the clients

    with open_retriever(settings) as retriever:
        return report_unanswered(entries, LocalEmbedder(), retriever.retrieve)


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
_SHOWN_QUESTIONS: Final = 8
_SHOWN_CHARS: Final = 300

_COUNTED: Final = (
    "LOG_QUESTIONS was off, the question is about a selected text, or the group is too small to be "
    "among those that are shown."
)
_ADVICE: Final = (
    "Similar questions are grouped; the groups are suggestions. The nearest sections are what a "
    "search finds, with the similarity to the question (0 to 1). If one of them should answer the "
    "question, improve its words. If none does, the book may need a new section, or the question "
    "is outside the course."
)


def describe_feedback(entries: LogEntries) -> tuple[Block, ...]:
    """Return the measures, the worst rated sections and the notes of a question log as a tree."""
    pairs = entries.pair()
    heads = ("measure", "value", "goal")
    levels = Counter(one.level for one in entries.answers)
    counts = tuple((_LEVELS.get(level, level), str(times)) for level, times in levels.items())
    rated = [(rating, answer) for answer, rating in pairs if rating]
    rated.sort(key=lambda one: one[0].rated_at, reverse=True)
    tags = Counter(tag for rating, _ in rated for tag in rating.tags)
    said = [f"{tag}: {number}" for tag, number in tags.most_common()]
    notes = [(rating, answer) for rating, answer in rated if rating.note.strip()]
    for rating, answer in notes[:_MAX_NOTES]:
        asked = f', asked "{shorten(answer.question, _SHOWN_CHARS)}"' if answer.question else ""
        said.append(f"{shorten(rating.note, _SHOWN_CHARS)} (rated {rating.rating}{asked})")
    return (
        Table(heads, tuple(tabulate(compute(LogFigures, pairs)))),
        Table(("how questions were answered", "answers"), counts),
        Section("Sections with the worst ratings", _list_worst(pairs)),
        *([Section("What readers said", (Items(tuple(said)),))] if said else []),
    )


def _list_worst(pairs: Sequence[tuple[LoggedAnswer, Rating | None]]) -> tuple[Block, ...]:
    """Return the sections with bad ratings, most of these first.

    Refusals do not count, as they cite no section.
    """
    by_url: dict[str, list[int]] = defaultdict(list)
    for answer, rating in pairs:
        if rating and answer.kind != "refused":
            for url in dict.fromkeys(answer.sources):
                by_url[url].append(rating.rating)
    found = [
        (sum(value <= BAD_RATING for value in values), sum(values) / len(values), url)
        for url, values in by_url.items()
    ]
    worst = sorted((-bad, mean, url) for bad, mean, url in found if bad)[:_MAX_SECTIONS]
    if not worst:
        return ("No answer was rated 1 or 2.",)
    rows = tuple(
        (shorten(url, _SHOWN_CHARS), str(-bad), str(len(by_url[url])), f"{mean:.1f}")
        for bad, mean, url in worst
    )
    heads = ("section", "rated 1 or 2", "ratings", "mean rating")
    return "Answers that cite these sections were rated 1 or 2.", Table(heads, rows)


def describe_unanswered(report: UnansweredReport) -> tuple[Block, ...]:
    """Return the report on unanswered questions as a tree."""
    if not report.answers:
        return ("Every question was answered, and no answer was rated 1 or 2.",)
    number = len(report.answers)
    counts = tuple((reason, str(times)) for reason, times in _count_reasons(report.answers))
    blocks: list[Block] = [
        (
            "Questions that were not answered, or whose answers were rated 1 or 2: "
            f"{number} of {report.answer_count}."
        ),
        Table(("reason", "answers"), counts),
    ]
    left = number - report.grouped_count
    if left:
        blocks.append(f"{left:,} of them are only counted. {_COUNTED}")
    if report.clusters:
        blocks.append(_ADVICE)
    return (*blocks, *map(_describe_group, report.clusters))


def _describe_group(cluster: QuestionCluster) -> Section:
    first, *others = (
        shorten(question, _SHOWN_CHARS) for question in cluster.questions[:_SHOWN_QUESTIONS]
    )
    left = len(cluster.questions) - _SHOWN_QUESTIONS
    reasons = ", ".join(f"{reason} ({times})" for reason, times in _count_reasons(cluster.answers))
    lines = [f"asked {len(cluster.answers)} times: {reasons}"]
    lines += [f"also: {question}" for question in others]
    lines += [f"and {left} more wordings"] if left > 0 else []
    lines += [f"near: {page}" for page in cluster.pages]
    return Section(first, (Items(tuple(lines)),))
