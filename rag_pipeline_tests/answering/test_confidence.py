"""Tests of the three levels of confidence and of the bar for related passages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_pipeline.answering.confidence import (
    ANSWERED_FROM,
    COVERED_FROM,
    NO_EVIDENCE,
    RELATED_FROM,
    TEXTBOOK_RULE,
    Signals,
    choose_level,
    choose_rule,
    is_named_by_heading,
    is_related,
    lacks_asked_fact,
    lacks_qualifier,
    measure_signals,
    read_asked_fact,
)
from rag_pipeline.answering.models import Level
from rag_pipeline.core.models import TextBlock, TextBlockKind
from rag_pipeline_tests.answering.factories import make_chunk, make_result

QUESTION = "How does a walking robot keep its balance with the capture point?"


@pytest.mark.parametrize("scale", [0.01, 0.1, 1.0])
def test_a_passage_of_an_unknown_model_must_stand_out_from_unrelated_questions(
    scale: float,
) -> None:
    """The scale of the model's cosines makes no difference."""
    found = []
    for deviations in (0.0, 2.0, 3.0, 5.0):
        chunk = make_chunk(cosine=0.2 + deviations * 0.1 * scale)
        result = make_result(QUESTION, [chunk], model="openai/x/1/1/0")
        assert result.evidence is not None
        evidence = replace(result.evidence, unrelated=(0.2, 0.1 * scale))
        confident = choose_rule(evidence.model).confidence(
            measure_signals(replace(result, evidence=evidence), QUESTION)
        )
        found.append((choose_level(confident), is_related(chunk, evidence)))
    assert found == [
        (Level.NOT_COVERED, False),
        (Level.NOT_COVERED, False),
        (Level.ANSWERED, True),
        (Level.ANSWERED, True),
    ]


@pytest.mark.parametrize(
    ("confident", "level"),
    [
        (0.0, Level.NOT_COVERED),
        (COVERED_FROM - 1e-9, Level.NOT_COVERED),
        (COVERED_FROM, Level.CLOSEST_PASSAGES),
        (ANSWERED_FROM - 1e-9, Level.CLOSEST_PASSAGES),
        (ANSWERED_FROM, Level.ANSWERED),
        (1.0, Level.ANSWERED),
    ],
)
def test_a_confidence_has_one_of_three_levels(confident: float, level: Level) -> None:
    assert choose_level(confident) is level


@pytest.mark.parametrize(
    ("cosine", "related"), [(RELATED_FROM - 0.01, False), (RELATED_FROM + 0.01, True)]
)
def test_a_passage_is_related_from_a_nearness_on(cosine: float, *, related: bool) -> None:
    assert is_related(make_chunk(cosine=cosine), NO_EVIDENCE) is related


@pytest.mark.parametrize(
    ("question", "text", "lacks"),
    [
        ("Who invented the capture point?", "The capture point is a place on the floor.", True),
        ("Who invented the capture point?", "It was introduced by Jerry Pratt in 2006.", False),
        ("who created redux", "Dan Abramov created Redux for a talk.", False),
        ("Who runs your callbacks?", "The executor runs them.", False),
        ("When was ROS 2 released?", "ROS 2 is a middleware. Gazebo dates from 2012.", True),
        ("When was ROS 2 released?", "ROS 2 was first released in 2017.", False),
        ("When was ROS 2 released?", "The release notes of ROS 2 begin with 2026.6.", True),
        ("When should I use a service?", "Use a service for short requests.", False),
        ("How much does a lidar cost?", "A lidar measures distances with 16 beams.", True),
        ("How much does a lidar cost?", "A lidar costs about $900.", False),
        ("How much does a lidar cost?", "A lidar at rest has $300/(4\\cdot 9)=8$.", True),
        ("How much does a camera topic cost in bandwidth?", "A camera takes 27 MB/s.", False),
        ("where can i buy a lidar", "A lidar measures distances.", True),
        ("where can i buy a lidar", "Many shops have a lidar.", False),
        ("who wrote the simulator", "The simulator is built of libraries.", True),
        ("who develops the app", "Google collected reports of the app.", True),
        ("who develops the app", "The App Design is for designers.", True),
        ("who develops the app", "The app was made by careful tests.", True),
        ("who develops the app", "When you wrote it, you tested the app.", True),
        ("who develops the app", "The app was made by members of the Acme team.", False),
        ("who develops the app", "Acme maintains the app.", False),
        ("how long does the app run", "The app runs.", False),
        ("who is the maintainer of the parser", "Maintainer: Ada Lovelace", False),
        ("how many users does the app have", "The app has a user list and 3 tabs.", False),
        ("how many users does the app have", "The app has 3 tabs.", True),
        ("how many users should I plan for", "The app has tabs.", False),
        ("which python version do i need", "Install Node 22 and Python.", False),
        ("which python version do i need", "Python is needed. Install Node 22.", True),
        ("how old is the parser", "The parser is old.", True),
        ("weight of the robot", "The robot weighs 35 kg.", False),
    ],
)
def test_a_question_for_a_kind_of_fact_needs_a_passage_with_one(
    question: str, text: str, *, lacks: bool
) -> None:
    assert lacks_asked_fact([make_chunk(text)], question) is lacks


@pytest.mark.parametrize(
    ("question", "sentence", "tells"),
    [
        ("how many holidays do i get", "You get 11 paid holidays.", True),
        ("how many holidays do i get", "In week 7 you get holidays.", False),
        ("how much memory does it need", "By default it takes 2 GB of memory.", True),
        ("how much memory does it need", "It needs memory.", False),
        ("how long is the break", "The break has ten minutes.", True),
        ("how often do you meet", "We meet twice a year.", True),
        ("when are the holidays", "The holidays begin on May 1.", True),
        ("when are the holidays", "The holidays may begin.", False),
        ("which version of python do i need", "Take Python 3.12.", True),
    ],
)
def test_a_sentence_tells_the_fact_that_a_question_asks_for(
    question: str, sentence: str, *, tells: bool
) -> None:
    test = read_asked_fact(question)
    assert test is not None
    assert test(sentence) is tells


def test_the_heading_above_a_sentence_may_name_what_the_fact_is_about() -> None:
    test = read_asked_fact("when are summer hours")
    assert test is not None
    assert not test("They begin on May 1.")
    below = read_asked_fact("when are summer hours", frozenset({"summer", "hour"}))
    assert below is not None
    assert below("They begin on May 1.")
    assert read_asked_fact("why is there a summer") is None


@pytest.mark.parametrize(
    ("question", "text", "lacks"),
    [
        ("how to install the app on windows", "Install the app with apt.", True),
        ("how to install the app on Windows", "On Windows, install the app with setup.exe.", False),
        ("install the app on windows with docker", "Windows runs the app.", True),
        ("debug tests in vscode", "Debug the tests in VS Code.", False),
        ("build the app from source", "source setup.bash # builds the app", True),
        ("build the app from source", "Build the app from source with make.", False),
        ("read data from simulator", "The simulator publishes data.", False),
        ("read data from jupiter", "The simulator publishes data.", True),
        ("write a node in rust", "Write a node in Python.", True),
        ("the app on windows", "The app opens a window.", True),
        ("the app on a drone", "The app runs on a laptop.", True),
        ("the app on drones", "Drones run the app.", False),
        ("run the app on an android device", "The app finds the device.", True),
        ("run the app on an android device", "On Android, the app finds the device.", False),
        ("calibration for lidars", "Calibrate cameras.", True),
        ("explain the app in simple terms", "The app runs.", False),
        ("explain the app in one sentence", "The app runs.", False),
        ("simulator version 9", "Simulator 5.1 has 19 parts.", True),
        ("simulator version 5", "Simulator 5 has doors.", False),
        ("what does chapter 12.5 cover", "Chapter 2.5 covers lids.", True),
        ("what does chapter 2.5 cover", "Chapter 2.5 covers lids.", False),
        ("what does chapter 2 cover", "Chapter 2.5 covers lids.", True),
        ("explain the filter in detail", "A filter smooths.", False),
        ("how does a filter smooth", "A filter smooths.", False),
        (
            "my team and I have a problem with our robot, how can we install the app on windows",
            "Install the app.",
            False,
        ),
    ],
)
def test_the_case_that_a_short_question_names_must_be_in_a_passage(
    question: str, text: str, *, lacks: bool
) -> None:
    assert lacks_qualifier([make_chunk(text)], question) is lacks


@pytest.mark.parametrize(
    ("question", "section", "named"),
    [
        ("what is the capture point", "Capture point", True),
        ("capture point explained simply", "Capture points", True),
        ("capture point", "The capture point of a leg", False),
        ("price of the capture point", "Capture point", False),
    ],
)
def test_a_heading_with_all_terms_of_a_question_and_no_other_names_it(
    question: str, section: str, *, named: bool
) -> None:
    chunk = make_chunk("It is a place.", section=section)
    block = TextBlock(TextBlockKind.PARAGRAPH, 0, 14, 1, 1)
    with_text = replace(chunk, metadata=replace(chunk.metadata, blocks=(block,)))
    assert is_named_by_heading([with_text], question) is named
    heading = replace(block, kind=TextBlockKind.HEADING)
    bare = replace(chunk, metadata=replace(chunk.metadata, blocks=(heading,)))
    assert not is_named_by_heading([bare], question)


def test_a_short_question_needs_all_of_its_words_and_a_long_one_does_not() -> None:
    signals = Signals(
        semantic=0.45, support=0.42, cover=0.6, known=1.0, headings=0.5, word_count=2, chunk_count=9
    )
    short, long = (TEXTBOOK_RULE.confidence(replace(signals, word_count=count)) for count in (2, 9))
    assert short < ANSWERED_FROM < long


def test_a_near_passage_is_shown_although_the_book_uses_other_words() -> None:
    signals = Signals(
        semantic=0.5, support=0.4, cover=0.3, known=0.3, headings=0.0, word_count=3, chunk_count=22
    )
    assert choose_level(TEXTBOOK_RULE.confidence(signals)) is Level.CLOSEST_PASSAGES
    far = replace(signals, semantic=0.3)
    assert choose_level(TEXTBOOK_RULE.confidence(far)) is Level.NOT_COVERED
