"""Tests of the reports on ratings and on unanswered questions."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.embedders.local import LocalEmbedder
from rag_pipeline.core.errors import QueryEmptyError, QueryError
from rag_pipeline.core.protocols.question_log import Rating
from rag_pipeline.evaluation.feedback.book import LogEntries, draft_entry
from rag_pipeline.evaluation.feedback.ratings import report_feedback
from rag_pipeline.evaluation.feedback.rendering import render_feedback, render_unanswered
from rag_pipeline.evaluation.feedback.unanswered import report_unanswered
from rag_pipeline_tests.adapters.question_log.databases import NOW, make_logged

if TYPE_CHECKING:
    from rag_pipeline.retrieval.models import RetrievalResult
    from rag_pipeline.retrieval.queries import Query


def find_nothing(query: Query) -> RetrievalResult:
    """Fail as a search does for a question without visible characters."""
    del query
    raise QueryEmptyError


def test_the_share_of_good_ratings_has_a_number_and_an_interval() -> None:
    answers = [make_logged(f"a{number}") for number in range(20)]
    ratings = [Rating(f"a{number}", NOW, 5 if number < 15 else 1) for number in range(20)]
    report = report_feedback(answers, [*ratings, Rating("deleted", NOW, 1)])
    assert report.helpful
    assert (report.helpful.mean, report.helpful.count) == (0.75, 20)
    assert report.helpful.low < 0.75 < report.helpful.high
    assert "too few to tell" in render_feedback(report)
    assert [one.bad_count for one in report.worst_sections] == [5, 5]


def test_a_log_without_ratings_is_reported_as_not_measured() -> None:
    report = report_feedback([make_logged()], [])
    assert report.helpful is None
    assert "not measured" in render_feedback(report)
    assert render_feedback(report_feedback([], [])).startswith("0 answers")


def test_answers_are_counted_per_week_from_monday() -> None:
    answers = [make_logged("a", asked_at=NOW - timedelta(days=14)), make_logged("b")]
    weeks = report_feedback(answers, []).weeks
    assert [week.answer_count for week in weeks] == [1, 1]
    assert {week.monday.weekday() for week in weeks} == {0}
    assert weeks[1].monday - weeks[0].monday == timedelta(days=14)


def test_similar_unanswered_questions_form_one_cluster() -> None:
    questions = [
        "How do I install ROS 2 on Windows?",
        "How can I install ROS 2 on Windows 11?",
        "Who won the football world cup?",
    ]
    answers = [
        make_logged(f"a{number}", question=text, kind="refused", level="not_covered")
        for number, text in enumerate(questions)
    ]
    report = report_unanswered(answers, [], LocalEmbedder(), find_nothing)
    assert [one.answer_ids for one in report.clusters] == [("a0", "a1"), ("a2",)]
    assert "may be about the same subject" in render_unanswered(report)


def test_a_bad_rating_makes_a_question_unanswered_and_text_is_escaped() -> None:
    answers = [make_logged("a", question="<img src=x> [link](http://x)"), make_logged("b")]
    report = report_unanswered(answers, [Rating("a", NOW, 2)], LocalEmbedder(), find_nothing)
    assert report.count == 1
    assert r"&lt;img src=x&gt; \[link\](http://x)" in render_unanswered(report)


def test_questions_that_were_not_logged_are_only_counted() -> None:
    answers = [make_logged("a", question=None, level="not_covered")]
    report = report_unanswered(answers, [], LocalEmbedder(), find_nothing)
    assert (report.count, report.unlogged_count, report.clusters) == (1, 1, ())
    assert "was not logged" in render_unanswered(report)


@pytest.mark.parametrize(
    ("answer_id", "problem"), [("unknown", "no answer"), ("silent", "was not logged")]
)
def test_an_entry_needs_a_logged_question(answer_id: str, problem: str) -> None:
    entries = LogEntries((make_logged("silent", question=None),), ())
    with pytest.raises(QueryError, match=problem):
        draft_entry(entries, answer_id, [])
