"""Tests of the tables of ratings and of unanswered questions."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_pipeline.adapters.embedders.local import LocalEmbedder
from rag_pipeline.core.errors import QueryEmptyError
from rag_pipeline.core.protocols import Rating
from rag_pipeline.evaluation.feedback import (
    MAX_QUESTIONS,
    LogEntries,
    QuestionCluster,
    _find_stars,
    cluster_questions,
    count_reasons,
    describe_feedback,
    describe_group,
    find_unanswered,
)
from rag_pipeline_tests.adapters.database.databases import NOW, make_logged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.protocols import LoggedAnswer
    from rag_pipeline.core.vectors import FloatMatrix
    from rag_pipeline.retrieval.models import RetrievalResult
    from rag_pipeline.retrieval.queries import Query


def describe(answers: Sequence[LoggedAnswer], *ratings: Rating) -> dict[str, Any]:
    """Return the numbers and tables of the ratings of a log."""
    return describe_feedback(LogEntries(tuple(answers), ratings))


def group(answers: Sequence[LoggedAnswer]) -> list[QuestionCluster]:
    """Group unanswered questions whose search finds nothing."""
    return cluster_questions(answers, LocalEmbedder(), find_nothing)


def list_ids(clusters: Sequence[QuestionCluster]) -> list[tuple[str, ...]]:
    """Return the ids of the answers of each group."""
    return [tuple(one.answer_id for one in cluster.answers) for cluster in clusters]


def find_nothing(query: Query) -> RetrievalResult:
    """Fail as a search does for a question without visible characters."""
    del query
    raise QueryEmptyError


def test_the_share_of_good_ratings_has_a_number_and_an_interval() -> None:
    answers = [make_logged(f"a{number}") for number in range(20)]
    ratings = [Rating(f"a{number}", NOW, 5 if number < 15 else 1) for number in range(20)]
    ratings.append(Rating("deleted", NOW, 1))
    numbers = describe(answers, *ratings)
    assert (numbers["answer_count"], numbers["rating_count"]) == (20, 20)
    assert numbers["helpful_share"] == 0.75
    assert numbers["helpful_low"] < 0.75 < numbers["helpful_high"]
    worst = numbers["worst_sections"]
    assert [row["section"] for row in worst] == list(answers[0].sources)
    assert [list(row.values())[1:] for row in worst] == [[5, 20, 4.0]] * 2


def test_a_log_without_ratings_has_no_share() -> None:
    numbers = describe([make_logged()])
    assert (numbers["answer_count"], numbers["rating_count"]) == (1, 0)
    assert not {"helpful_share", "helpful_low", "helpful_high"} & set(numbers)
    assert not any(describe([]).values())


def test_answers_are_counted_by_level() -> None:
    answers = [make_logged("a"), make_logged("b"), make_logged("c", level="not_covered")]
    found = describe(answers)
    levels = [tuple(row.values()) for row in found["levels"]]
    assert levels == [("answered", 2), ("not covered", 1)]
    assert found["unanswered_count"] == 1


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
    ratings = (Rating("a1", NOW, 2), Rating("a2", NOW, 1))
    unanswered = find_unanswered(LogEntries(tuple(answers), ratings))
    clusters = group(unanswered)
    assert list_ids(clusters) == [("a0", "a1"), ("a2",)]
    assert describe_group(clusters[0]) == {
        "question": "How do I install ROS 2 on Windows?",
        "asked": 2,
        "reasons": "the book does not cover it (1), answered, but rated 1 or 2 (1)",
        "other wordings": "How can I install ROS 2 on Windows 11?",
        "nearest sections": "",
    }
    reasons = [("the book does not cover it", 2), ("answered, but rated 1 or 2", 1)]
    assert count_reasons(unanswered) == reasons


def test_a_bad_rating_makes_a_question_unanswered() -> None:
    entries = LogEntries((make_logged("a"), make_logged("b")), (Rating("a", NOW, 2),))
    assert [one.answer_id for one in find_unanswered(entries)] == ["a"]


def test_questions_that_were_not_logged_are_not_grouped() -> None:
    assert group([make_logged("a", question=None, level="not_covered")]) == []


def test_the_same_question_is_one_question_however_often_it_is_asked() -> None:
    answers = [
        make_logged(f"a{number}", question=f"What  is\nlove?{' ' * number}", level="not_covered")
        for number in range(3)
    ]
    clusters = group(answers)
    assert [one.questions for one in clusters] == [("What is love?",)]
    assert list_ids(clusters) == [("a0", "a1", "a2")]


def test_questions_about_a_selection_are_not_grouped() -> None:
    values = {"mode": "selected_text_only", "reason": "unrelated_to_selection"}
    answers = [make_logged("a", question="What is this?", level="not_covered", **values)]
    assert group(answers) == []
    assert count_reasons(answers) == [("the selection does not answer it", 1)]


class CircleEmbedder:
    """An embedder of numbers: the cosine of two questions is that of the angle between them."""

    def embed_query(self, text: str) -> FloatMatrix:
        """Return a point of the unit circle."""
        return np.array([np.cos(float(text)), np.sin(float(text))], dtype=np.float32)


def test_only_the_newest_questions_are_grouped() -> None:
    answers = [
        make_logged(f"a{number}", question=f"{number / 1000}", level="not_covered")
        for number in range(MAX_QUESTIONS + 3)
    ]
    clusters = cluster_questions(answers, CircleEmbedder(), find_nothing)
    found = {answer_id for ids in list_ids(clusters) for answer_id in ids}
    assert found == {one.answer_id for one in answers[3:]}


def test_different_questions_are_groups_of_their_own() -> None:
    apart = np.eye(MAX_QUESTIONS, dtype=np.float32)
    assert len(list(_find_stars(apart))) == MAX_QUESTIONS


def test_many_wordings_are_cut_off_with_their_number() -> None:
    questions = tuple(f"Question {number}?" for number in range(10))
    answers = (make_logged(level="closest_passages", reason="uncertain"),) * 10
    row = describe_group(QuestionCluster(questions, answers, ("A (0.50)",)))
    assert str(row["other wordings"]).endswith("Question 7?; and 2 more wordings")
    assert row["reasons"] == "only the closest passages were shown (10)"
    assert row["nearest sections"] == "A (0.50)"


def test_replies_and_an_empty_log_have_no_unanswered_questions() -> None:
    reply = make_logged("a", kind="reply", level="no_question", reason="small_talk")
    assert find_unanswered(LogEntries((reply,), ())) == []
    assert group([]) == []


def test_tags_and_notes_of_readers_are_shown_newest_first() -> None:
    answers = [make_logged("a", question=None), make_logged("b", question="Why?")]
    tables = describe(
        answers,
        Rating("b", NOW - timedelta(hours=1), 1, ("too_long", "wrong"), "Not this <b>leg</b>"),
        Rating("a", NOW, 5, ("wrong",), "Thanks"),
        Rating("deleted", NOW, 1, ("lost",), "Gone"),
    )
    assert [tuple(row.values()) for row in tables["tags"]] == [("wrong", 2), ("too_long", 1)]
    assert tables["notes"] == [
        {"note": "Thanks", "rating": 5, "question": ""},
        {"note": "Not this <b>leg</b>", "rating": 1, "question": "Why?"},
    ]


def test_a_refusal_blames_no_section() -> None:
    refused = make_logged("a", kind="refused", level="not_covered")
    assert describe([refused], Rating("a", NOW, 1))["worst_sections"] == []
