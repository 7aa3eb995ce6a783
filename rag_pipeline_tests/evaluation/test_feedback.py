"""Tests of the reports on ratings and on unanswered questions."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from rag_pipeline.adapters.embedders.local import LocalEmbedder
from rag_pipeline.core.errors import QueryEmptyError
from rag_pipeline.core.protocols import Rating
from rag_pipeline.evaluation.feedback import (
    MAX_QUESTIONS,
    LogEntries,
    LogFigures,
    QuestionCluster,
    UnansweredReport,
    _find_stars,
    describe_feedback,
    describe_unanswered,
    report_unanswered,
)
from rag_pipeline.evaluation.measures import compute
from rag_pipeline.evaluation.pages import to_markdown
from rag_pipeline_tests.adapters.database.databases import NOW, make_logged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.protocols import LoggedAnswer
    from rag_pipeline.core.vectors import FloatMatrix
    from rag_pipeline.retrieval.models import RetrievalResult
    from rag_pipeline.retrieval.queries import Query


def render_feedback(answers: Sequence[LoggedAnswer], ratings: Sequence[Rating] = ()) -> str:
    """Return the report on answers and ratings as Markdown."""
    return to_markdown(describe_feedback(LogEntries(tuple(answers), tuple(ratings))))


def measure(answers: Sequence[LoggedAnswer], ratings: Sequence[Rating]) -> LogFigures:
    """Return the measures of a question log."""
    return compute(LogFigures, LogEntries(tuple(answers), tuple(ratings)).pair())


def group(answers: Sequence[LoggedAnswer], *ratings: Rating) -> UnansweredReport:
    """Group the unanswered questions of a log whose search finds nothing."""
    entries = LogEntries(tuple(answers), ratings)
    return report_unanswered(entries, LocalEmbedder(), find_nothing)


def list_ids(report: UnansweredReport) -> list[tuple[str, ...]]:
    """Return the ids of the answers of each group."""
    return [tuple(one.answer_id for one in cluster.answers) for cluster in report.clusters]


def render_unanswered(report: UnansweredReport) -> str:
    """Return the report on unanswered questions as Markdown."""
    return to_markdown(describe_unanswered(report))


def find_nothing(query: Query) -> RetrievalResult:
    """Fail as a search does for a question without visible characters."""
    del query
    raise QueryEmptyError


def test_the_share_of_good_ratings_has_a_number_and_an_interval() -> None:
    answers = [make_logged(f"a{number}") for number in range(20)]
    ratings = [Rating(f"a{number}", NOW, 5 if number < 15 else 1) for number in range(20)]
    ratings.append(Rating("deleted", NOW, 1))
    figures = measure(answers, ratings)
    assert figures.helpful
    assert (figures.helpful.mean, figures.helpful.count) == (0.75, 20)
    assert figures.helpful.low < 0.75 < figures.helpful.high
    numbers = figures.list_numbers()
    assert (numbers["answer_count"], numbers["rating_count"]) == (20, 20)
    assert (numbers["helpful_share"], numbers["helpful_low"]) == (0.75, figures.helpful.low)
    shown = render_feedback(answers, ratings)
    assert re.search(r"\| ratings of 4 or 5 \(SC-005\) \| 0\.750 .* \| at least 0\.80 \|", shown)
    assert shown.count("| 5 | 20 | 4.0 |") == 2  # each of the two cited sections


def test_a_log_without_ratings_has_no_share() -> None:
    assert measure([make_logged()], []).helpful is None
    assert "helpful_share" not in measure([make_logged()], []).list_numbers()
    assert "| answers in the log | 0 |" in render_feedback([])


def test_answers_are_counted_by_level() -> None:
    answers = [make_logged("a"), make_logged("b"), make_logged("c", level="not_covered")]
    shown = render_feedback(answers)
    assert "| answered | 2 |" in shown
    assert "| not fully answered | 1 |" in shown


def test_similar_unanswered_questions_form_one_cluster() -> None:
    questions = {
        "How do I install ROS 2 on Windows?": "not_covered",
        "How can I install ROS 2 on Windows 11?": "answered",
        "Who won the football world cup?": "not_covered",
    }
    answers = [
        make_logged(f"a{number}", question=text, level=level, reason=level)
        for number, (text, level) in enumerate(questions.items())
    ]
    ratings = [Rating("a1", NOW, 2), Rating("a2", NOW, 1)]
    report = group(answers, *ratings)
    assert list_ids(report) == [("a0", "a1"), ("a2",)]
    shown = render_unanswered(report)
    assert "### How do I install ROS 2 on Windows?" in shown
    assert "- also: How can I install ROS 2 on Windows 11?" in shown
    assert (
        "- asked 2 times: the book does not cover it (1), answered, but rated 1 or 2 (1)" in shown
    )
    assert "### Who won the football world cup?\n\n- asked 1 times: the book does not" in shown


def test_a_bad_rating_makes_a_question_unanswered_and_text_is_escaped() -> None:
    answers = [make_logged("a", question="<img src=x> [link](http://x)"), make_logged("b")]
    report = group(answers, Rating("a", NOW, 2))
    assert len(report.answers) == 1
    # A word joiner after http, www and @ keeps Markdown programs from making a link.
    assert "&lt;img src=x&gt; \\[link\\](http\u2060://x)" in render_unanswered(report)


def test_questions_that_were_not_logged_are_only_counted() -> None:
    answers = [make_logged("a", question=None, level="not_covered")]
    report = group(answers)
    assert (len(report.answers), report.grouped_count, report.clusters) == (1, 0, ())
    assert "1 of them are only counted. LOG\\_QUESTIONS was off" in render_unanswered(report)


def test_the_same_question_is_one_question_however_often_it_is_asked() -> None:
    answers = [
        make_logged(f"a{number}", question=f"What  is\nlove?{' ' * number}", level="not_covered")
        for number in range(3)
    ]
    report = group(answers)
    assert [one.questions for one in report.clusters] == [("What is love?",)]
    assert list_ids(report) == [("a0", "a1", "a2")]


def test_questions_about_a_selection_are_counted_but_not_grouped() -> None:
    values = {"mode": "selected_text_only", "reason": "unrelated_to_selection"}
    answers = [make_logged("a", question="What is this?", level="not_covered", **values)]
    report = group(answers)
    assert (len(report.answers), report.grouped_count, report.clusters) == (1, 0, ())
    shown = render_unanswered(report)
    assert "the selection does not answer it | 1" in shown
    assert "1 of them are only counted." in shown


class CircleEmbedder:
    """An embedder of numbers: the cosine of two questions is that of the angle between them."""

    def embed_query(self, text: str) -> FloatMatrix:
        """Return a point of the unit circle."""
        return np.array([np.cos(float(text)), np.sin(float(text))], dtype=np.float32)


def test_questions_beyond_the_limit_are_counted_and_named() -> None:
    answers = [
        make_logged(f"a{number}", question=f"{number / 1000}", level="not_covered")
        for number in range(MAX_QUESTIONS + 3)
    ]
    report = report_unanswered(LogEntries(tuple(answers), ()), CircleEmbedder(), find_nothing)
    assert len(report.answers) - report.grouped_count == 3
    assert "3 of them are only counted." in render_unanswered(report)


def test_different_questions_are_groups_of_their_own() -> None:
    apart = np.eye(MAX_QUESTIONS, dtype=np.float32)
    assert len(list(_find_stars(apart))) == MAX_QUESTIONS


def test_many_groups_and_wordings_are_cut_off_with_their_number() -> None:
    clusters = tuple(
        QuestionCluster(
            tuple(f"Question {place}.{number}?" for number in range(count)),
            (make_logged(level="closest_passages", reason="uncertain"),) * count,
            ("A | page (0.50)",),
        )
        for place, count in enumerate((10, 1))
    )
    report = UnansweredReport(clusters[0].answers * 2, 30, clusters)
    shown = render_unanswered(report)
    assert "20 of 30" in shown
    assert "| only the closest passages were shown | 20 |" in shown
    assert "- asked 10 times: only the closest passages were shown (10)" in shown
    assert "- and 2 more wordings" in shown
    assert "### Question 1.0?" in shown
    assert "- near: A \\| page (0.50)" in shown
    assert "9 of them are only counted." in shown


def test_replies_and_an_empty_log_have_no_unanswered_questions() -> None:
    reply = make_logged("a", kind="reply", level="no_question", reason="small_talk")
    for answers in ([reply], []):
        report = group(answers)
        assert (report.answers, report.clusters) == ((), ())
        assert "###" not in render_unanswered(report)


def test_tags_and_notes_of_readers_are_shown_newest_first() -> None:
    answers = [make_logged("a", question=None), make_logged("b", question="Why?")]
    ratings = [
        Rating("b", NOW - timedelta(hours=1), 1, ("too_long", "wrong"), "Not this <b>leg</b>"),
        Rating("a", NOW, 5, ("wrong",), "Thanks"),
        Rating("deleted", NOW, 1, ("lost",), "Gone"),
    ]
    shown = render_feedback(answers, ratings)
    assert "- wrong: 2\n- too\\_long: 1\n- Thanks (rated 5)\n" in shown
    assert "- Thanks (rated 5)" in shown
    assert '- Not this &lt;b&gt;leg&lt;/b&gt; (rated 1, asked "Why?")' in shown
    assert "Gone" not in shown


def test_a_refusal_blames_no_section() -> None:
    refused = make_logged("a", kind="refused", level="not_covered")
    assert "No answer was rated 1 or 2." in render_feedback([refused], [Rating("a", NOW, 1)])
