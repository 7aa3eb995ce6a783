"""Tests of the hint that a question is in another language than the book."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.answering.reading.languages import (
    find_foreign_terms,
    find_language,
    find_languages,
)
from rag_pipeline.evaluation.golden_set import load_golden_set
from rag_pipeline_tests.answering.factories import CODE, SENSING, WALKING, make_chunk
from rag_pipeline_tests.answering.questions import load_questions

FOREIGN = load_questions("foreign")

ENGLISH_BOOK = (make_chunk(WALKING), make_chunk(SENSING), make_chunk(CODE))
GERMAN_BOOK = (
    make_chunk("Ein Roboter hält sein Gleichgewicht, wenn der Fuß auf dem richtigen Punkt steht."),
)


def ask(question: str) -> str:
    """Return the language of a question in another language than the book; otherwise ""."""
    return (find_languages(question, ENGLISH_BOOK) or ("",))[0]


@pytest.mark.parametrize("language", FOREIGN["latin"])
def test_most_questions_in_another_language_have_a_hint_and_none_a_wrong_one(language: str) -> None:
    questions = FOREIGN["latin"][language]
    notices = [ask(question) for question in questions]
    given_hints = [notice for notice in notices if notice]
    assert len(questions) == 30
    assert len(given_hints) >= 24
    for notice in given_hints:
        assert notice in {language, "another language"}


@pytest.mark.parametrize("language", FOREIGN["other_scripts"])
def test_a_script_tells_the_language(language: str) -> None:
    for question in FOREIGN["other_scripts"][language]:
        assert ask(question) == language


def test_no_question_of_the_golden_set_or_of_the_calibration_has_a_hint() -> None:
    queries = load_golden_set().queries
    golden = [text for entry in queries for text in (entry.question, entry.paraphrase) if text]
    others = [entry for value in load_questions("calibration").values() for entry in value]
    asked = [*golden, *others]
    assert len(asked) > 500
    assert [question for question in asked if ask(question)] == []


@pytest.mark.parametrize(
    "question",
    [
        "ROS 2 vs ROS 1 DDS?",
        "sim2real gap?",
        "URDF",
        "La Scala",
        "de facto standard QoS",
        "et al. and per se",
        "Kálmán filter, Gauß and naïve Bayes",
        "the locales en, de and es",
        "en de fr es it",
        "Los Angeles de facto",
        "var min = Math.min(a, b)",
        "for (auto i : des) { con.send(i); }",
        "SELECT name FROM a WHERE id IN (1)",
        "import numpy as np",
        "jest.mock or jest.spyOn",
        "μ and Δt",
        "What does über mean?",
        'What does the German word "der" mean?',
        "What is 加 in this table?",
        "\u0394\u03b8?",
        "\U0001f44b?",
        "42",
        "",
    ],
)
def test_terms_names_and_code_are_of_no_language(question: str) -> None:
    assert ask(question) == ""


def test_the_language_of_the_book_comes_from_its_passages() -> None:
    assert find_languages("Was ist ein Roboter?", GERMAN_BOOK) is None
    assert find_languages("What is a robot and how does it walk?", GERMAN_BOOK) == (
        "English",
        "German",
    )


def test_there_is_no_hint_in_a_translation_with_untranslated_pages() -> None:
    translation = [
        replace(chunk, citation=replace(chunk.citation, locale="de")) for chunk in ENGLISH_BOOK
    ]
    question = "Wie hält ein Roboter das Gleichgewicht?"
    assert ask(question)
    assert not find_languages(question, translation)
    assert not find_foreign_terms(question, translation)


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("Was ist ein URDF?", "URDF"),
        ("Was ist der Unterschied zwischen Topic und Service?", "Unterschied Topic Service"),
        ("\u00bfQu\u00e9 es el zero moment point?", "zero moment point"),
        ("ROS 2 kya hai?", "ROS 2"),
        ("\u4ec0\u4e48\u662fURDF?", "URDF"),
        ("\u0427\u0442\u043e \u0442\u0430\u043a\u043e\u0435 ROS 2?", "ROS 2"),
        ("\u0427\u0442\u043e \u0442\u0430\u043a\u043e\u0435?", ""),
        ("Was ist das?", ""),
        ("What is a URDF and how does it work?", ""),
        ("URDF", ""),
    ],
)
def test_the_terms_of_a_question_in_another_language_are_left(question: str, terms: str) -> None:
    assert find_foreign_terms(question, ENGLISH_BOOK) == terms


def test_there_is_no_hint_if_the_language_of_the_book_is_not_clear() -> None:
    assert find_languages("Was ist ein Roboter?", ()) is None
    assert find_languages("Was ist ein Roboter?", (make_chunk("x = 1"),)) is None


@given(st.text(max_size=80))
def test_any_text_has_a_language_or_none(text: str) -> None:
    assert isinstance(find_language(text), str)
