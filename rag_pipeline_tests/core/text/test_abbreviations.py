"""Abbreviations that a text spells out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.core.text.abbreviations import (
    add_other_forms,
    find_abbreviations,
    find_unshortened,
    find_unspelled,
    mark_abbreviations,
    mark_question,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "After non-maximum suppression (NMS) one box is left.",
            ("NMS", "non-maximum suppression"),
        ),
        ("### Intersection over union (IoU)", ("IoU", "Intersection over union")),
        ("**Robot Operating System** (**ROS**)", ("ROS", "Robot Operating System")),
        ("NMS (non-maximum suppression) removes boxes.", ("NMS", "non-maximum suppression")),
        ("DDS stands for Data Distribution Service.", ("DDS", "Data Distribution Service")),
        ("| LiDAR | light detection and ranging |", ("LiDAR", "light detection and ranging")),
        ("Many QoSs: quality of service, (QoS)", ("QoS", "quality of service")),
        ("over the Hypertext Transfer Protocol (HTTP)", ("HTTP", "Hypertext Transfer Protocol")),
        (
            "proportional-integral-derivative (PID) control",
            ("PID", "proportional-integral-derivative"),
        ),
    ],
)
def test_both_orders_of_a_definition_are_found(text: str, expected: tuple[str, str]) -> None:
    assert [(one.short, one.long) for one in find_abbreviations(text)] == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "The robot walks (NMS).",
        "Use the API (see below).",
        "numbers (NMS)",
        "NMS: keep the best box",
        "It runs on Linux (OK).",
        "a robot. operating system (ROS)",
        "open source (for all) (OS)",
    ],
)
def test_words_that_do_not_begin_with_the_letters_are_no_long_form(text: str) -> None:
    assert find_abbreviations(text) == []


def test_a_question_and_a_definition_share_the_mark_of_either_form() -> None:
    marks = set(mark_abbreviations("non-maximum suppression (NMS)"))
    for question in ("what is NMS", "how does non maximum suppression work"):
        assert marks & set(mark_question(question))
    assert not marks & set(mark_question("maximum suppression of noise"))


def test_a_question_may_have_one_form_or_both() -> None:
    known = find_abbreviations("non-maximum suppression (NMS)")
    assert find_unspelled("what is nms", known) == known
    assert find_unshortened("what is nms", known) == []
    assert find_unshortened("why non-maximum suppression?", known) == known
    assert find_unspelled("why non-maximum suppression?", known) == []
    for question in ("NMS is non-maximum suppression", "maximum suppression"):
        assert find_unspelled(question, known) == find_unshortened(question, known) == []


def test_a_text_with_one_form_has_the_terms_of_both() -> None:
    known = find_abbreviations("non-maximum suppression (NMS)")
    (one,) = known
    assert add_other_forms(frozenset({"nms", "box"}), known) >= {"box", *one.long_terms}
    assert "nms" in add_other_forms(frozenset(one.long_terms), known)
    assert add_other_forms(frozenset({"box"}), known) == {"box"}


@given(st.text(alphabet="aAbB (),|:-\n*", max_size=80))
def test_every_long_form_stands_in_the_text(text: str) -> None:
    for one in find_abbreviations(text):
        assert one.long in text
        assert one.short in text
