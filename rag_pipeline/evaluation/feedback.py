"""The question log of one book: what it says about the book, the page, and golden-set entries."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from rag_pipeline.adapters.database.questions import open_question_log
from rag_pipeline.adapters.local_files import write_text_atomically
from rag_pipeline.answering.models import Level
from rag_pipeline.core.errors import QueryError, RagPipelineError
from rag_pipeline.evaluation.measures import Interval, compute, count, share, tabulate
from rag_pipeline.evaluation.pages import Block, Items, Line, Mark, Section, Table, shorten, to_page
from rag_pipeline.retrieval.queries import Mode, Query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from rag_pipeline.core.models import JsonValue, ParsedDoc
    from rag_pipeline.core.protocols import Embedder, LoggedAnswer, Rating
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.core.vectors import FloatMatrix
    from rag_pipeline.evaluation.golden_set import Half
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

    def list_numbers(self) -> dict[str, JsonValue]:
        """Return the numbers by name. The share is left out without ratings."""
        numbers = asdict(self)
        helpful = numbers.pop("helpful") or {}
        names = {"mean": "helpful_share", "low": "helpful_low", "high": "helpful_high"}
        return numbers | {names[key]: value for key, value in helpful.items() if key in names}


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
        answer_count: Number of all answers in the log.
        by_reason: Number of them by reason, such as `not_covered` or `rated_badly`, most frequent
            first.
        clusters: At most 30 clusters, largest first. A cluster may consist of one question.
            Questions about a selection and questions that were not logged are in none.
    """

    count: int
    answer_count: int
    by_reason: dict[str, int]
    clusters: tuple[QuestionCluster, ...]

    @property
    def grouped_count(self) -> int:
        """Number of the answers whose questions are in a cluster."""
        return sum(len(cluster.answer_ids) for cluster in self.clusters)


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
    chosen = [
        answer
        for answer, rating in entries.pair()
        if is_unanswered(answer) or (rating and rating.rating <= BAD_RATING)
    ]
    asked = [one for one in chosen if _read_question(one) and one.mode != Mode.SELECTED_TEXT_ONLY]
    clusters = cluster_questions(asked[-MAX_QUESTIONS:], embedder)[:_MAX_CLUSTERS]
    return UnansweredReport(
        len(chosen),
        len(entries.answers),
        _count_reasons(chosen),
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


PAGE_NAME: Final = "feedback.html"

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
    "is outside the course. To measure a question from now on, run "
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
        (
            Mark(shorten(url, _SHOWN_CHARS), "link", url),
            str(-bad),
            str(len(by_url[url])),
            f"{mean:.1f}",
        )
        for bad, mean, url in worst
    )
    heads = ("section", "rated 1 or 2", "ratings", "mean rating")
    return "Answers that cite these sections were rated 1 or 2.", Table(heads, rows)


def describe_unanswered(report: UnansweredReport) -> tuple[Block, ...]:
    """Return the report on unanswered questions as a tree."""
    if not report.count:
        return ("Every question was answered, and no answer was rated 1 or 2.",)
    found = f"{report.count} of {report.answer_count}"
    blocks: list[Block] = [
        f"Questions that were not answered, or whose answers were rated 1 or 2: {found}."
    ]
    if report.by_reason:
        counts = tuple(
            (_REASONS.get(key, key), str(count)) for key, count in report.by_reason.items()
        )
        blocks.append(Table(("reason", "answers"), counts))
    left = report.count - report.grouped_count
    if left:
        blocks.append(f"{left:,} of them are only counted. {_COUNTED}")
    if report.clusters:
        blocks.append((_ADVICE, Mark("rag-pipeline golden-entry --from-log ID", "code"), "."))
    blocks += [_describe_group(one) for one in report.clusters]
    return tuple(blocks)


def _describe_group(cluster: QuestionCluster) -> Section:
    first, *others = (
        shorten(question, _SHOWN_CHARS) for question in cluster.questions[:_SHOWN_QUESTIONS]
    )
    left = len(cluster.questions) - _SHOWN_QUESTIONS
    reasons = ", ".join(
        f"{_REASONS.get(key, key)} ({times})" for key, times in cluster.by_reason.items()
    )
    lines: list[Line] = [f"asked {len(cluster.answer_ids)} times: {reasons}"]
    lines += [f"also: {question}" for question in others]
    lines += [f"and {left} more wordings"] if left > 0 else []
    lines += [
        ("near: ", Mark(page.place, "link", page.url), f" ({page.similarity:.2f})")
        for page in cluster.pages
    ]
    lines.append(("id: ", Mark(cluster.answer_ids[-1], "code")))
    return Section(first, (Items(tuple(lines)),), form="article")


def write_page(
    settings: Settings,
    entries: LogEntries,
    unanswered: UnansweredReport | None = None,
    path: Path | None = None,
) -> Path:
    """Write the page for authors about the question log, and return its path.

    The page is one HTML file without scripts or requests.

    Args:
        settings: The settings of the book, to group questions and to name the default file.
        entries: The entries of the question log.
        unanswered: The grouped questions. None groups them now. If the index cannot be read then,
            the page says why and has no groups.
        path: The file. None writes `feedback.html` into the state folder of the book.

    Raises:
        OSError: The file cannot be written.
    """
    problem = ""
    if unanswered is None:
        try:
            unanswered = group_unanswered(settings, entries)
        except RagPipelineError as error:
            problem = error.public_message
    page = render_page(entries, unanswered, settings.assistant_name, problem)
    target = path or settings.state_dir / PAGE_NAME
    write_text_atomically(target, page)
    return target


def render_page(
    entries: LogEntries, unanswered: UnansweredReport | None, name: str, problem: str = ""
) -> str:
    """Return the page as HTML.

    Args:
        entries: The entries of the question log, oldest answer first.
        unanswered: The grouped questions without an answer; None if they could not be grouped.
        name: Name of the assistant.
        problem: Why the questions could not be grouped.
    """
    blocks: tuple[Block, ...] = (
        ("There are no questions yet. ", Mark("rag-pipeline serve", "code"), " logs them."),
    )
    if entries.answers:
        grouped: tuple[Block, ...] = (f"The questions could not be grouped: {problem}",)
        if unanswered is not None:
            grouped = describe_unanswered(unanswered)
        first, last = (entries.answers[at].asked_at.date() for at in (0, -1))
        blocks = (
            f"{first} to {last}",
            *describe_feedback(entries),
            Section("What the book did not answer", grouped),
            "Questions and notes can be personal. Share this page with care.",
        )
    return to_page(f"What readers asked {name}", blocks)


_MAX_ID_WORDS: Final = 5


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
    if not found[0].question or found[0].mode == Mode.SELECTED_TEXT_ONLY:
        raise QueryError(
            "this question was not logged. LOG_QUESTIONS=true logs later questions, but never a "
            "selected text"
        )
    question = " ".join((found[0].search_question or found[0].question).split())
    # The sections that a refusal names are related to the question, but do not answer it.
    is_refused = found[0].kind == "refused"
    name = "-".join(re.findall(r"[^\W_]+", question.casefold())[:_MAX_ID_WORDS]) or "new"
    return {
        "id": name,
        "question": question,
        "category": "fact",
        "all_of": False,
        "expected": [] if is_refused else _find_sections(found[0].sources, pages),
        "split": choose_half(name),
    }


def choose_half(query_id: str) -> Half:
    """Return the half of the golden set, "tune" or "report", for the id of a new question.

    The half depends only on a hash of the id, so that nobody can choose it by looking at results.
    """
    return "report" if hashlib.sha256(query_id.encode()).digest()[0] % 2 else "tune"


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
