"""Questions that ask for two things, and the place each of them gets."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.retrieval.parts import (
    FIRST_PLACE,
    MAX_PARTS,
    PART_DEPTH,
    place_parts,
    split_question,
)
from rag_pipeline_tests.retrieval.test_ranking import make_candidate, numbers, rank


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (
            "How does embodied cognition relate to sim-to-real transfer?",
            ("embodied cognition", "sim-to-real transfer"),
        ),
        (
            "What is the difference between a service call and an action goal?",
            ("a service call", "an action goal"),
        ),
        (
            "Which paint dries fastest, and how do I clean the brushes?",
            ("Which paint dries fastest", "how do I clean the brushes"),
        ),
        (
            "Why do clocks drift? How are two clocks kept together?",
            ("Why do clocks drift", "How are two clocks kept together"),
        ),
        ("Compare copper pipes with plastic pipes", ("copper pipes", "plastic pipes")),
        ("PID vs. model predictive control", ("PID", "model predictive control")),
    ],
)
def test_a_question_for_two_things_is_split(question: str, parts: tuple[str, ...]) -> None:
    assert split_question(question) == parts


@pytest.mark.parametrize(
    "question",
    [
        "What is a Jacobian?",
        "My robot falls over sideways. How do I stop that?",
        "How do nodes and topics work?",
        "Is it between the two?",
        "and how",
        "",
        "vs",
    ],
)
def test_a_question_for_one_thing_is_left_whole(question: str) -> None:
    assert split_question(question) == ()


@given(st.text(max_size=300))
def test_any_text_gives_no_part_or_two_or_three_of_its_own_words(question: str) -> None:
    parts = split_question(question)
    assert len(parts) in {0, 2, MAX_PARTS}
    assert all(part and part in " ".join(question.split()) for part in parts)


@pytest.mark.parametrize(
    "question", ["how does a" + " " * 4_900 + "relate", "\t" * 4_999 + "x", "a " * 2_500]
)
def test_no_question_takes_long_to_look_at(question: str) -> None:
    start = time.perf_counter()
    assert split_question(question) == ()
    assert time.perf_counter() - start < 0.1  # runs of blanks once took hours


def test_the_best_hit_of_each_part_follows_the_first_three() -> None:
    hits = [make_candidate(number) for number in range(1, 11)]
    whole = rank(*hits)
    parts = [rank(hits[0], hits[8]), rank(hits[6], hits[7])]
    # The first part's best stands among the first three already; the second's moves up.
    assert numbers(place_parts(whole, parts, 5)) == [1, 2, 3, 7, 4]


def test_a_part_is_looked_for_no_deeper_where_more_hits_are_wanted() -> None:
    hits = [make_candidate(number) for number in range(PART_DEPTH + 5)]
    parts = [rank(hits[-1], hits[9])]
    for count in (5, len(hits)):
        assert numbers(place_parts(rank(*hits), parts, count))[:5] == [0, 1, 2, 9, 3]


def test_a_hit_that_the_whole_question_did_not_find_gets_no_place() -> None:
    whole = rank(*(make_candidate(number) for number in range(1, 6)))
    assert numbers(place_parts(whole, [rank(make_candidate(99))], 5)) == [1, 2, 3, 4, 5]


@given(st.permutations(range(1, 13)), st.integers(1, 12))
def test_places_do_not_depend_on_how_many_are_asked_for(order: list[int], count: int) -> None:
    hits = {number: make_candidate(number) for number in range(1, 13)}
    whole = rank(*(hits[number] for number in range(1, 13)))
    part = rank(*(hits[number] for number in order))
    few, many = place_parts(whole, [part], count), place_parts(whole, [part], 12)
    assert numbers(few) == numbers(many)[:count]
    assert sorted(numbers(many)) == list(range(1, 13))
    assert numbers(many)[:FIRST_PLACE] == [1, 2, 3]
