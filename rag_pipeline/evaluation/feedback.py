"""The question log of one book: reading it, and comparing its questions with the book's pages."""

from __future__ import annotations

import html
import itertools
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import numpy as np

from rag_pipeline.adapters.database.questions import open_question_log
from rag_pipeline.core.errors import QueryError
from rag_pipeline.evaluation.golden_entry import choose_half
from rag_pipeline.evaluation.metrics import find_interval
from rag_pipeline.retrieval.queries import Query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import date

    from rag_pipeline.core.models import JsonValue, ParsedDoc
    from rag_pipeline.core.protocols import Embedder, LoggedAnswer, Rating
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.core.vectors import FloatMatrix
    from rag_pipeline.evaluation.records import Interval
    from rag_pipeline.retrieval.models import RetrievalResult


GOOD_RATING: Final = 4
"""The lowest rating of a helpful answer."""

GOAL: Final = 0.8
"""SC-005: the share of ratings that are 4 or 5."""

BAD_RATING: Final = 2
"""The highest rating of an answer that did not help."""

_MAX_SECTIONS: Final = 10
_MAX_NOTES: Final = 10


@dataclass(frozen=True, slots=True)
class SectionRatings:
    """The ratings of the answers that cite a section.

    Attributes:
        url: Address of the section.
        mean: Mean rating, 1 to 5.
        count: Number of ratings.
        bad_count: Number of ratings of 1 or 2.
    """

    url: str
    mean: float
    count: int
    bad_count: int


@dataclass(frozen=True, slots=True)
class Note:
    """What a reader wrote about an answer.

    Attributes:
        answer_id: Id of the answer.
        rating: 1 to 5.
        text: The note; not empty.
        question: The question; None if it was not logged.
    """

    answer_id: str
    rating: int
    text: str
    question: str | None


@dataclass(frozen=True, slots=True)
class Week:
    """The answers and ratings of one week.

    Attributes:
        monday: First day of the week, in UTC.
        answer_count: Number of answers.
        unanswered_count: Number of answers at the level `closest_passages` or `not_covered`.
        helpful: Share of ratings that are 4 or 5; None without ratings.
        by_level: Number of answers by level. Replies, such as to a greeting, count as `reply`.
    """

    monday: date
    answer_count: int
    unanswered_count: int
    helpful: Interval | None
    by_level: dict[str, int]


@dataclass(frozen=True, slots=True)
class FeedbackReport:
    """What readers think of the answers in the log.

    Attributes:
        answer_count: Number of answers in the log.
        unanswered_count: Number of answers at the level `closest_passages` or `not_covered`.
        helpful: Share of ratings that are 4 or 5 (SC-005); None without ratings.
        worst_sections: At most 10 sections with a rating of 1 or 2, most such ratings first.
        weeks: Every week with an answer, oldest first.
        tags: Number of ratings by tag, most frequent first.
        notes: At most 10 notes, newest first.
        by_level: Number of answers by level. Replies, such as to a greeting, count as `reply`.
    """

    answer_count: int
    unanswered_count: int
    helpful: Interval | None
    worst_sections: tuple[SectionRatings, ...]
    weeks: tuple[Week, ...]
    tags: dict[str, int]
    notes: tuple[Note, ...]
    by_level: dict[str, int]


def report_feedback(answers: Sequence[LoggedAnswer], ratings: Sequence[Rating]) -> FeedbackReport:
    """Summarize the answers and ratings of the question log.

    A rating of an answer that is not among the answers is ignored.
    """
    given = {one.answer_id: one.rating for one in ratings}
    asked = {one.answer_id: one for one in answers}
    known = sorted((one for one in ratings if one.answer_id in asked), key=lambda one: one.rated_at)
    tags = Counter(tag for one in known for tag in one.tags)
    notes = [
        Note(one.answer_id, one.rating, one.note, asked[one.answer_id].question)
        for one in reversed(known)
        if one.note.strip()
    ]
    return FeedbackReport(
        answer_count=len(answers),
        unanswered_count=_count_unanswered(answers),
        helpful=_find_helpful(answers, given),
        worst_sections=tuple(_find_worst(answers, given)),
        weeks=tuple(_split_weeks(answers, given)),
        tags=dict(tags.most_common()),
        notes=tuple(notes[:_MAX_NOTES]),
        by_level=_count_levels(answers),
    )


def is_unanswered(answer: LoggedAnswer) -> bool:
    """Return True if the book did not fully answer the question. Replies need no answer."""
    return answer.kind != "reply" and answer.level in {"closest_passages", "not_covered"}


def _count_unanswered(answers: Sequence[LoggedAnswer]) -> int:
    return sum(is_unanswered(one) for one in answers)


def _count_levels(answers: Sequence[LoggedAnswer]) -> dict[str, int]:
    return dict(Counter("reply" if one.kind == "reply" else one.level for one in answers))


def _find_helpful(answers: Sequence[LoggedAnswer], given: dict[str, int]) -> Interval | None:
    rated = [given[one.answer_id] for one in answers if one.answer_id in given]
    return find_interval([rating >= GOOD_RATING for rating in rated])


def _find_worst(answers: Sequence[LoggedAnswer], given: dict[str, int]) -> list[SectionRatings]:
    """Return the sections with bad ratings. Refusals do not count, as they cite no section."""
    by_url: dict[str, list[int]] = defaultdict(list)
    for one in answers:
        if one.answer_id in given and one.kind != "refused":
            for url in dict.fromkeys(one.sources):
                by_url[url].append(given[one.answer_id])
    sections = [
        SectionRatings(
            url,
            sum(values) / len(values),
            len(values),
            sum(value <= BAD_RATING for value in values),
        )
        for url, values in by_url.items()
    ]
    bad = [section for section in sections if section.bad_count]
    return sorted(bad, key=lambda one: (-one.bad_count, one.mean, one.url))[:_MAX_SECTIONS]


def _split_weeks(answers: Sequence[LoggedAnswer], given: dict[str, int]) -> list[Week]:
    by_week: dict[date, list[LoggedAnswer]] = defaultdict(list)
    for one in answers:
        day = one.asked_at.date()
        by_week[day - timedelta(days=day.weekday())].append(one)
    return [
        Week(
            monday,
            len(asked),
            _count_unanswered(asked),
            _find_helpful(asked, given),
            _count_levels(asked),
        )
        for monday, asked in sorted(by_week.items())
    ]


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


_SHOWN_QUESTIONS: Final = 5
_SHOWN_CHARS: Final = 200

_REASONS: Final = {
    "not_covered": "the book does not cover it",
    "uncertain": "only the closest passages were shown",
    "no_passages": "no passage matched the filters",
    "model_declined": "the model found no answer in the passages",
    "unrelated_to_selection": "the selection does not answer it",
    RATED_BADLY: "answered, but rated 1 or 2",
}


_ADVICE: Final = (
    "The nearest sections are what a search finds, with the similarity to the question (0 to 1). "
    "If one of them should answer the question, improve its words. If none does, the book may need "
    "a new section, or the question is outside the course. To measure a question from now on, run "
    "`rag-pipeline golden-entry --from-log ID`."
)


def render_feedback(report: FeedbackReport) -> str:
    """Return the report on ratings as Markdown."""
    unanswered = show_part(report.unanswered_count, report.answer_count)
    lines = [
        f"**SC-005**, the share of ratings that are 4 or 5: {show_share(report.helpful)}. "
        + judge_goal(report),
        "",
        f"Answers in the log: {report.answer_count}. Not fully answered: {unanswered}.",
    ]
    if report.weeks:
        lines += ["", "A share of ratings is followed by its 95% interval."]
        header = "| week from | answers | not fully answered | rated 4 or 5 |"
        lines += ["", header, "|---|---|---|---|"]
    lines += [
        f"| {week.monday} | {week.answer_count} | "
        f"{show_part(week.unanswered_count, week.answer_count)} | {show_share(week.helpful)} |"
        for week in report.weeks
    ]
    if report.worst_sections:
        lines += ["", "### Sections to check", "", *_render_sections(report.worst_sections)]
    if report.tags or report.notes:
        lines += ["", "### What readers said", ""]
    lines += [
        f"- {_escape(tag)}: {_count(number, 'rating')}" for tag, number in report.tags.items()
    ]
    for note in report.notes:
        about = f', asked "{_escape(note.question)}"' if note.question else ""
        lines.append(f"- {_escape(note.text)} (rated {note.rating}{about})")
    return "\n".join(lines)


def render_unanswered(report: UnansweredReport) -> str:
    """Return the report on unanswered questions as Markdown."""
    part = show_part(report.count, report.answer_count)
    lines = [f"Questions that were not answered, or whose answers were rated 1 or 2: {part}."]
    if report.by_reason:
        lines += ["", "| reason | answers |", "|---|---|"]
        lines += [
            f"| {_escape(name_reason(key))} | {count} |" for key, count in report.by_reason.items()
        ]
    if report.unlogged_count:
        lines += ["", f"Only counted, because the text was not logged: {report.unlogged_count}."]
        lines.append("LOG_QUESTIONS=true logs the text of later questions.")
    if report.selection_count:
        lines += [
            "",
            f"Only counted, because a selection was asked about: {report.selection_count}.",
        ]
    if report.omitted_count:
        lines += ["", f"Only counted, because newer ones are grouped: {report.omitted_count}."]
    groups = [one for one in report.clusters if len(one.answer_ids) > 1]
    single = [one for one in report.clusters if len(one.answer_ids) == 1]
    if report.clusters:
        lines += ["", _ADVICE]
    if groups:
        lines += ["", "### Asked more than once", ""]
        lines.append("The groups are suggestions: similar words can mean different things.")
    for number, cluster in enumerate(groups, 1):
        lines += ["", *_render_group(number, cluster)]
    if single:
        lines += ["", "### Asked once", ""]
        lines += ["| question | reason | nearest section | id |", "|---|---|---|---|"]
    reasons = list(report.by_reason)
    single.sort(key=lambda one: reasons.index(next(iter(one.by_reason))))
    lines += [_render_single(one) for one in single]
    hidden = report.cluster_count - len(report.clusters)
    if hidden > 0:
        lines += ["", f"Not shown: {hidden} more questions or groups."]
    return "\n".join(lines)


def list_feedback_numbers(report: FeedbackReport) -> dict[str, JsonValue]:
    """Return the numbers of the report by name. The share is left out without ratings."""
    numbers: dict[str, JsonValue] = {
        "answer_count": report.answer_count,
        "unanswered_count": report.unanswered_count,
        "rating_count": report.helpful.count if report.helpful else 0,
    }
    if report.helpful:
        interval = report.helpful
        numbers |= {
            "helpful_share": interval.mean,
            "helpful_low": interval.low,
            "helpful_high": interval.high,
        }
    return numbers


def _render_sections(sections: Sequence[SectionRatings]) -> list[str]:
    """Return the table of sections. The folder that all addresses share is shown only once."""
    folder = _find_folder([one.url for one in sections])
    place = f" below {_show_code(folder)}" if folder else ""
    return [
        f"These sections{place} are cited by answers that were rated 1 or 2.",
        "",
        "| section | rated 1 or 2 | ratings | mean rating |",
        "|---|---|---|---|",
        *(
            f"| {_show_code(one.url.removeprefix(folder))} | "
            f"{one.bad_count} | {one.count} | {one.mean:.1f} |"
            for one in sections
        ),
    ]


def _find_folder(urls: Sequence[str]) -> str:
    """Return the longest common beginning of the addresses that ends with a slash; may be empty.

    It never includes the name of a page, even if addresses end with a slash.
    """
    folders = [url.partition("#")[0].rstrip("/").split("/")[:-1] for url in urls]
    shared = itertools.takewhile(
        lambda names: len(set(names)) == 1, itertools.zip_longest(*folders)
    )
    return "".join(f"{names[0]}/" for names in shared)


def _render_group(number: int, cluster: QuestionCluster) -> list[str]:
    shown = cluster.questions[:_SHOWN_QUESTIONS]
    count = len(cluster.answer_ids)
    reasons = ", ".join(
        f"{_escape(name_reason(key))} ({times})" for key, times in cluster.by_reason.items()
    )
    lines = [f"**{number}. {_escape(shown[0])}** (asked {count} times)", ""]
    lines += [f"- also: {_escape(question)}" for question in shown[1:]]
    if len(cluster.questions) > len(shown):
        lines.append(f"- and {_count(len(cluster.questions) - len(shown), 'more wording')}")
    lines.append(f"- reason: {reasons}")
    lines += [f"- near: {_show_page(page)}" for page in cluster.pages]
    lines.append(f"- id: {_show_code(cluster.answer_ids[-1])}")
    return lines


def _render_single(cluster: QuestionCluster) -> str:
    page = _show_page(cluster.pages[0]) if cluster.pages else "none"
    reason = _escape(name_reason(next(iter(cluster.by_reason))))
    question = _escape(cluster.questions[0])
    return f"| {question} | {reason} | {page} | {_show_code(cluster.answer_ids[0])} |"


def _show_page(page: NearPage) -> str:
    return f"{_escape(page.place)} ({page.similarity:.2f})"


def name_reason(reason: str) -> str:
    """Return a reason in words, as plain text; an unknown reason as it is."""
    return _REASONS.get(reason, reason)


def judge_goal(report: FeedbackReport) -> str:
    """Return a sentence that says if the share of good ratings reaches the goal."""
    if report.helpful is None:
        return "There are no ratings yet."
    if report.helpful.low >= GOAL:
        return f"The goal of {GOAL:.0%} is reached."
    if report.helpful.high < GOAL:
        return f"The goal of {GOAL:.0%} is missed."
    return f"The ratings are too few to tell if the goal of {GOAL:.0%} is reached."


def show_share(interval: Interval | None) -> str:
    """Return a share of ratings with its interval and count, or "not measured"."""
    if interval is None:
        return "not measured"
    ratings = _count(interval.count, "rating")
    return f"{interval.mean:.0%} ({interval.low:.0%} to {interval.high:.0%}, {ratings})"


def show_part(count: int, total: int) -> str:
    """Return a count with its share of a total."""
    return f"{count} of {total} ({count / total:.0%})" if total else str(count)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _show_code(text: str) -> str:
    """Return an address or id as Markdown code, which has no escapes."""
    line = "".join(text.split())[:_SHOWN_CHARS]
    return f"`{line.replace('`', '%60').replace('|', '%7C')}`"


def _escape(text: str) -> str:
    line = " ".join(text.split())
    line = re.sub(r"(?i)(https?(?=:)|www(?=\.)|@)", "\\1\u2060", line)  # or it would become a link
    line = line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"
    return re.sub(r"([\\`*_\[\]|~#!$])", r"\\\1", html.escape(line, quote=False))
