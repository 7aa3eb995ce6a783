"""Tests of answers that quote passages of the book."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_pipeline.answering.grounding import apply_grounding_policy
from rag_pipeline.answering.models import Answer, AnswerKind
from rag_pipeline.answering.quoting.choosing import choose_passages
from rag_pipeline.answering.quoting.extracted import (
    _mark_sentences,
    format_passages,
    format_selection,
    quote_answer,
)
from rag_pipeline.core.models import Figure
from rag_pipeline.retrieval.models import Citation
from rag_pipeline_tests.answering.factories import CODE, SENSING, WALKING, make_chunk, make_result
from rag_pipeline_tests.answering.quoting.test_choosing import make_source

QUESTION = "How does ankle torque relate to gyroscope drifts?"


def ask(question: str, *texts: str) -> Answer:
    """Return an answer that quotes the given texts."""
    chunks = [make_chunk(text, section=f"Section {at}") for at, text in enumerate(texts, 1)]
    grounded = apply_grounding_policy(make_result(question, chunks), question)
    return quote_answer(grounded, question, {})


def test_every_passage_is_verbatim_with_its_place_and_lines() -> None:
    answer = ask(QUESTION, WALKING, SENSING)
    assert answer.kind is AnswerKind.EXTRACTED
    assert {passage.text for passage in answer.passages} == {WALKING, SENSING}
    for passage in answer.passages:
        source = answer.grounding.sources[passage.number - 1]
        assert passage.text in source.text
        assert (passage.start_line, passage.end_line) == (1, 1)
        assert passage.citation == source.citation
        assert f"[{passage.number}]\n\n{passage.text}" in answer.text
    assert answer.citations == tuple(source.citation for source in answer.grounding.sources)


def test_the_sentences_with_the_words_of_the_question_are_marked() -> None:
    answer = ask("What does ankle torque correct?", WALKING)
    (passage,) = answer.passages
    marked = [passage.text[start:end] for start, end in passage.highlights]
    assert marked == ["Ankle torque corrects small errors within the support polygon."]
    assert [(one.text, one.cited) for one in answer.sentences] == [(marked[0], (1,))]


def test_a_passage_without_words_of_the_question_counts_as_one_sentence() -> None:
    answer = ask("Why is that?", WALKING)
    assert answer.passages[0].highlights == ()
    assert [one.text for one in answer.sentences] == [WALKING]


def test_below_a_heading_with_the_term_the_first_sentence_is_marked() -> None:
    chunk = make_chunk("It keeps the balance. It bends.", section="Ankle")
    question = "What is an ankle?"
    grounded = apply_grounding_policy(make_result(question, [chunk]), question)
    (passage,) = quote_answer(grounded, question, {}).passages
    assert [passage.text[low:high] for low, high in passage.highlights] == ["It keeps the balance."]


def mark(question: str, text: str, section: str) -> list[str]:
    """Return the marked sentences of the main passage of an answer from one section."""
    chunk = make_chunk(text, section=section)
    grounded = apply_grounding_policy(make_result(question, [chunk]), question)
    (passage, *_) = quote_answer(grounded, question, {}).passages
    return [passage.text[low:high] for low, high in passage.highlights]


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("Four numbers for a turn. A quaternion and its negative are equal.", "Four numbers"),
        ("It was found on a bridge. A quaternion is a hypercomplex number. It turns.", "A quat"),
        ("Turn it. " * 4 + "Quaternions avoid the gimbal lock.", "Quaternions avoid"),
    ],
)
def test_the_sentence_that_defines_the_term_is_marked(text: str, marked: str) -> None:
    (only,) = mark("What is a quaternion?", text, "Quaternion")
    assert only.startswith(marked)


def test_a_label_is_not_marked_if_a_sentence_has_a_word_of_the_question() -> None:
    question, text = "Which rate has the IMU?", "IMU\n\nAn IMU runs at 200 Hz. It is small."
    assert mark(question, text, "Sensors") == ["An IMU runs at 200 Hz."]
    assert mark(question, "IMU\n\nIt runs at 200 Hz.", "Rates") == ["It runs at 200 Hz."]
    assert mark(question, "IMU 200 Hz", "Sensors") == ["IMU 200 Hz"]


@pytest.mark.parametrize(
    "leaning", ["ROS 2 removed masters.", "So the master was removed in ROS 2."]
)
def test_a_sentence_that_stands_alone_is_marked_before_a_fragment(leaning: str) -> None:
    whole = "ROS 2 has no master, because nodes find each other."
    assert mark("why was the master removed in ROS 2", f"{whole} {leaning}", "Nodes") == [whole]
    assert mark("why was the master removed in ROS 2", f"{leaning} Fine.", "Nodes") == [leaning]


def test_only_sentences_with_the_fact_that_is_asked_are_marked() -> None:
    text = "The break is long and the break is loved. It has ten minutes. Break it off."
    assert mark("how long is the break", text, "Break") == ["It has ten minutes."]


def test_a_bold_label_is_marked_with_the_sentence_after_it() -> None:
    text = "- **Short breaks.** They tire nobody.\n- **Long walks.** They tire."
    assert mark("are breaks short", text, "Rest") == ["- **Short breaks.** They tire nobody."]


def test_the_description_of_an_image_is_not_marked() -> None:
    text = "Breaks tire nobody.\n\nA photo of breaks.\n\nBreaks are short."
    figure = Figure("image", "/break.png", "A photo of breaks.", "", 3)
    source = replace(make_source(text, "Rest", "Breaks"), figures=(figure,))
    (choice,) = choose_passages("photo of breaks", [source], {})
    marked = _mark_sentences(choice, "photo of breaks", {})
    assert [choice.text[start:end] for start, end in marked] == [
        "Breaks tire nobody.",
        "Breaks are short.",
    ]


def test_code_is_quoted_but_not_marked() -> None:
    answer = ask("Which rclpy call spins the walker node?", CODE)
    (passage,) = answer.passages
    assert passage.text == CODE
    assert all("```" not in passage.text[start:end] for start, end in passage.highlights)


def test_each_passage_has_an_explanation_of_its_choice() -> None:
    answer = ask(QUESTION, WALKING, SENSING)
    assert len(answer.explanation) == len(answer.passages)
    assert all(text.startswith("[") for text in answer.explanation)


def test_a_number_after_a_list_table_or_code_has_a_line_of_its_own() -> None:
    for text, gap in [
        ("It walks.", " "),
        ("Pick:\n\n- walk\n- trot", "\n\n"),
        ("Go:\n\n```sh\ngo\n```", "\n\n"),
        ("See:\n\n| a |\n|---|\n| 1 |", "\n\n"),
    ]:
        choices = choose_passages("walk", [make_source(text)], {})
        assert format_selection(choices) == f"{text}{gap}[1]"


def test_each_passage_stands_below_a_link_to_its_section() -> None:
    source = replace(
        make_source("It walks.\n\n- a\n- b"),
        citation=Citation("Walking", "The `ZMP` [1]", "/docs/walk#zmp", "", ""),
    )
    choices = choose_passages("walk", [source], {})
    assert format_passages(choices) == (
        "**[Walking > The \\`ZMP\\` \\[1\\]](/docs/walk#zmp)** [1]\n\nIt walks.\n\n- a\n- b"
    )
