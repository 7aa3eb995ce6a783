"""What readers think of the answers: SC-005, the worst-rated sections and the trend per week."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from rag_pipeline.evaluation.significance import find_interval

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from rag_pipeline.core.protocols.question_log import LoggedAnswer, Rating
    from rag_pipeline.evaluation.records import Interval

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
    """

    monday: date
    answer_count: int
    unanswered_count: int
    helpful: Interval | None


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
    """

    answer_count: int
    unanswered_count: int
    helpful: Interval | None
    worst_sections: tuple[SectionRatings, ...]
    weeks: tuple[Week, ...]
    tags: dict[str, int]
    notes: tuple[Note, ...]


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
    )


def is_unanswered(answer: LoggedAnswer) -> bool:
    """Return True if the book did not fully answer the question. Replies need no answer."""
    return answer.kind != "reply" and answer.level in {"closest_passages", "not_covered"}


def _count_unanswered(answers: Sequence[LoggedAnswer]) -> int:
    return sum(is_unanswered(one) for one in answers)


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
        Week(monday, len(asked), _count_unanswered(asked), _find_helpful(asked, given))
        for monday, asked in sorted(by_week.items())
    ]
