"""Tests of the reports on ratings and on unanswered questions."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from rag_pipeline.adapters.embedders.local import LocalEmbedder
from rag_pipeline.core.errors import QueryEmptyError, QueryError
from rag_pipeline.core.protocols import Rating
from rag_pipeline.evaluation.feedback import (
    MAX_QUESTIONS,
    LogEntries,
    NearPage,
    QuestionCluster,
    UnansweredReport,
    _find_stars,
    choose_half,
    describe_feedback,
    describe_unanswered,
    draft_entry,
    list_feedback_numbers,
    report_feedback,
    report_unanswered,
)
from rag_pipeline.evaluation.pages import to_markdown
from rag_pipeline_tests.adapters.database.databases import NOW, make_logged

if TYPE_CHECKING:
    from rag_pipeline.core.vectors import FloatMatrix
    from rag_pipeline.evaluation.feedback import FeedbackReport
    from rag_pipeline.retrieval.models import RetrievalResult
    from rag_pipeline.retrieval.queries import Query


def render_feedback(report: FeedbackReport) -> str:
    """Return the report on ratings as Markdown."""
    return to_markdown(describe_feedback(report))


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
    assert "Answers in the log: 0." in render_feedback(report_feedback([], []))


def test_answers_are_counted_by_level() -> None:
    answers = [make_logged("a"), make_logged("b"), make_logged("c", level="not_covered")]
    report = report_feedback(answers, [])
    assert report.by_level == {"answered": 2, "not_covered": 1}
    assert "| answered | 2 of 3 (67%) |" in render_feedback(report)


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
    report = report_unanswered(answers, ratings, LocalEmbedder(), find_nothing)
    assert [one.answer_ids for one in report.clusters] == [("a0", "a1"), ("a2",)]
    shown = render_unanswered(report)
    assert "### How do I install ROS 2 on Windows?" in shown
    assert "- also: How can I install ROS 2 on Windows 11?" in shown
    assert (
        "- asked 2 times: the book does not cover it (1), answered, but rated 1 or 2 (1)" in shown
    )
    assert "| Who won the football world cup? | the book does not cover it | none | `a2` |" in shown


def test_a_bad_rating_makes_a_question_unanswered_and_text_is_escaped() -> None:
    answers = [make_logged("a", question="<img src=x> [link](http://x)"), make_logged("b")]
    report = report_unanswered(answers, [Rating("a", NOW, 2)], LocalEmbedder(), find_nothing)
    assert report.count == 1
    # A word joiner after http, www and @ keeps Markdown programs from making a link.
    assert "&lt;img src=x&gt; \\[link\\](http\u2060://x)" in render_unanswered(report)


def test_questions_that_were_not_logged_are_only_counted() -> None:
    answers = [make_logged("a", question=None, level="not_covered")]
    report = report_unanswered(answers, [], LocalEmbedder(), find_nothing)
    assert (report.count, report.unlogged_count, report.clusters) == (1, 1, ())
    assert "because LOG\\_QUESTIONS is off" in render_unanswered(report)


def test_the_same_question_is_one_question_however_often_it_is_asked() -> None:
    answers = [
        make_logged(f"a{number}", question=f"What  is\nlove?{' ' * number}", level="not_covered")
        for number in range(3)
    ]
    (cluster,) = report_unanswered(answers, [], LocalEmbedder(), find_nothing).clusters
    assert cluster.questions == ("What is love?",)
    assert cluster.answer_ids == ("a0", "a1", "a2")


def test_questions_about_a_selection_are_counted_but_not_grouped() -> None:
    values = {"mode": "selected_text_only", "reason": "unrelated_to_selection"}
    answers = [make_logged("a", question="What is this?", level="not_covered", **values)]
    report = report_unanswered(answers, [], LocalEmbedder(), find_nothing)
    assert (report.count, report.selection_count, report.clusters) == (1, 1, ())
    shown = render_unanswered(report)
    assert "the selection does not answer it | 1" in shown
    assert "1 only counted, because they are about a selection." in shown


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
    report = report_unanswered(answers, [], CircleEmbedder(), find_nothing)
    assert report.omitted_count == 3
    assert sum(len(one.answer_ids) for one in report.clusters) == MAX_QUESTIONS
    assert "3 only counted, because newer ones are grouped." in render_unanswered(report)


def test_different_questions_are_groups_of_their_own() -> None:
    apart = np.eye(MAX_QUESTIONS, dtype=np.float32)
    assert len(list(_find_stars(apart))) == MAX_QUESTIONS


def test_many_groups_and_wordings_are_cut_off_with_their_number() -> None:
    clusters = tuple(
        QuestionCluster(
            tuple(f"Question {place}.{number}?" for number in range(count)),
            tuple(f"a{place}.{number}" for number in range(count)),
            {"uncertain": count},
            (NearPage("A | page", "", 0.5),),
        )
        for place, count in enumerate((10, 1))
    )
    report = UnansweredReport(9, {"uncertain": 9}, 0, clusters, 20, cluster_count=3)
    shown = render_unanswered(report)
    assert "9 of 20 (45%)" in shown
    assert "- and 2 more wordings" in shown
    assert "| Question 1.0? | only the closest passages were shown | A \\| page (0.50) |" in shown
    assert "1 questions or groups not shown." in shown


def test_replies_and_an_empty_log_have_no_unanswered_questions() -> None:
    reply = make_logged("a", kind="reply", level="no_question", reason="small_talk")
    for answers in ([reply], []):
        report = report_unanswered(answers, [], LocalEmbedder(), find_nothing)
        assert (report.count, report.clusters) == (0, ())
        assert "###" not in render_unanswered(report)


def test_tags_and_notes_of_readers_are_shown_newest_first() -> None:
    answers = [make_logged("a", question=None), make_logged("b", question="Why?")]
    ratings = [
        Rating("b", NOW - timedelta(hours=1), 1, ("too_long", "wrong"), "Not this <b>leg</b>"),
        Rating("a", NOW, 5, ("wrong",), "Thanks"),
        Rating("deleted", NOW, 1, ("lost",), "Gone"),
    ]
    report = report_feedback(answers, ratings)
    assert report.tags == {"wrong": 2, "too_long": 1}
    assert [note.text for note in report.notes] == ["Thanks", "Not this <b>leg</b>"]
    shown = render_feedback(report)
    assert "- too\\_long: 1\n" in shown
    assert "- Thanks (rated 5)" in shown
    assert '- Not this &lt;b&gt;leg&lt;/b&gt; (rated 1, asked "Why?")' in shown
    assert "Gone" not in shown


def test_a_refusal_blames_no_section() -> None:
    refused = make_logged("a", kind="refused", level="not_covered")
    assert report_feedback([refused], [Rating("a", NOW, 1)]).worst_sections == ()


@pytest.mark.parametrize(("good", "verdict"), [(100, "is reached"), (0, "is missed")])
def test_the_goal_is_judged_by_the_interval(good: int, verdict: str) -> None:
    answers = [make_logged(f"a{number}") for number in range(100)]
    ratings = [Rating(f"a{number}", NOW, 4 if number < good else 3) for number in range(100)]
    report = report_feedback(answers, ratings)
    assert f"The goal of 80% {verdict}" in render_feedback(report)
    assert list_feedback_numbers(report)["rating_count"] == 100
    assert "helpful_low" not in list_feedback_numbers(report_feedback(answers, []))


@pytest.mark.parametrize(
    ("answer_id", "problem"),
    [("selected", "a selected text"), ("unknown", "no answer"), ("silent", "was not logged")],
)
def test_an_entry_needs_a_logged_question(answer_id: str, problem: str) -> None:
    selected = make_logged("selected", mode="selected_text_only")
    entries = LogEntries((make_logged("silent", question=None), selected), ())
    with pytest.raises(QueryError, match=problem):
        draft_entry(entries, answer_id, [])


def test_ids_are_divided_into_halves_of_similar_size() -> None:
    halves = [choose_half(f"query-{number}") for number in range(200)]
    assert 80 <= halves.count("tune") <= 120
