"""Tests of greetings, thanks and questions about the tutor, which get a fixed reply."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.answering import AnswerKind, Level, Reason, Voice, answer
from rag_pipeline.answering.reading.small_talk import find_reply, remove_small_talk
from rag_pipeline.core.settings import Settings
from rag_pipeline.evaluation.golden_set import load_golden_set
from rag_pipeline.retrieval.queries import Mode, Query
from rag_pipeline_tests.answering.factories import FixedRetriever, make_chunk
from rag_pipeline_tests.answering.questions import load_questions

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        ("hello", "Hello."),
        ("Hello!", "Hello."),
        ("HELLO THERE", "Hello."),
        ("Hellooo", "Hello."),
        ("hi :)", "Hello."),
        ("Hi \U0001f44b", "Hello."),
        ("hey tutor", "Hello."),
        ("Good morning!", "Hello."),
        ("hello, how are you?", "Hello."),
        ("Hola", "Hello."),
        ("Assalamualaikum", "Hello."),
        ("thanks!", "Glad to help."),
        ("Thank you very much for your help.", "Glad to help."),
        ("thx", "Glad to help."),
        ("Ok, thanks", "Glad to help."),
        ("Great, that helps", "Glad to help."),
        ("hello again, thanks", "Glad to help."),
        ("no thanks", "Glad to help."),
        ("never mind", "Glad to help."),
        ("yes please", "I answer"),
        ("No.", "I answer"),
        ("hmm", "I answer"),
        ("bye", "Goodbye."),
        ("Thanks, see you tomorrow!", "Goodbye."),
        ("Good night", "Goodbye."),
        ("what can you do?", "I answer"),
        ("Hi! What can you do?", "I answer"),
        ("who are you?", "I answer"),
        ("Who are you, robotutor?", "I answer"),
        ("What's your name?", "I answer"),
        ("how does this work", "I answer"),
        ("How does this chat work?", "I answer"),
        ("can you help me?", "I answer"),
        ("Help me please", "I answer"),
        ("help", "I answer"),
        ("Are you a robot?", "I answer"),
        ("I have a question.", "I answer"),
        ("Hello, can I ask you something?", "I answer"),
    ],
)
def test_pure_small_talk_gets_its_reply(text: str, beginning: str) -> None:
    assert Voice().say(find_reply(Query(text))).startswith(beginning)


@pytest.mark.parametrize(
    "question",
    [
        "Hello, what is a URDF?",
        "Hi, robots",
        "hello world",
        "Hello, world!",
        "hi-res camera",
        "What is help text?",
        "help()",
        "--help",
        "help command",
        "Who are you allowed to hand a robot over to?",
        "What can you do with a lidar?",
        "What are you measuring with an IMU?",
        "How does this work in ROS 2?",
        "How does it work with two arms?",
        "Can you help me tune a PID controller?",
        "Thanks, but what about friction?",
        "Thank you notes",
        "Are you a robot if you have no body?",
        "What is this parameter for?",
        "bye.py",
        "hey_node",
        "Good night vision sensors",
        "Greetings in speech recognition",
        "great circle distance",
        "ok_status",
        "URDF",
        "hello " * 30,
    ],
)
def test_a_question_is_never_taken_for_small_talk(question: str) -> None:
    assert find_reply(Query(question)) == ""


def test_a_question_that_points_at_a_selection_is_about_the_selection() -> None:
    def ask(question: str) -> str:
        return find_reply(Query(question, Mode.SELECTED_TEXT_ONLY, "A gyro drifts."))

    assert ask("How does this work?") == ""
    assert ask("What is this?") == ""
    assert ask("Thanks!") == "thanks"


@given(st.text(max_size=60))
def test_any_text_can_be_checked(text: str) -> None:
    assert isinstance(find_reply(Query(text)), str)


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("Hello, what is a URDF?", "what is a URDF?"),
        ("Hi there! Thanks. What is a URDF?", "What is a URDF?"),
        ("What is a URDF? Thanks!", "What is a URDF?"),
        ("What is a URDF? Thanks in advance :)", "What is a URDF?"),
        ("How do I install v1.2.3, please?", "How do I install v1.2.3, please?"),
        ("Hello, world", "Hello, world"),
        ("hi-res camera", "hi-res camera"),
        ("Hey what is a URDF", "Hey what is a URDF"),
        ("What is a.b.c, and e.g. x; y?", "What is a.b.c, and e.g. x; y?"),
        ("Can you help me? I lost a node.", "Can you help me? I lost a node."),
        ("", ""),
    ],
)
def test_politeness_around_a_question_is_removed(question: str, left: str) -> None:
    assert remove_small_talk(question) == left


@pytest.mark.parametrize("mode", list(Mode))
def test_small_talk_is_answered_on_an_empty_machine(mode: Mode, tmp_path: Path) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path, openai_api_key="not-used")  # type: ignore[call-arg]  # pydantic reads it
    selected = "A gyro drifts." if mode is Mode.SELECTED_TEXT_ONLY else None
    given_answer = answer(Query("Hello!", mode, selected), settings=settings)
    assert given_answer.kind is AnswerKind.REPLY
    assert given_answer.text.startswith("Hello. Ask me anything")
    assert given_answer.grounding.reason is Reason.SMALL_TALK
    assert given_answer.grounding.level is Level.NO_QUESTION
    assert (given_answer.citations, given_answer.grounding.sources) == ((), ())
    assert (given_answer.sentences, given_answer.notices) == ((), ())
    assert list(tmp_path.iterdir()) == []


def test_a_greeting_before_a_question_is_not_searched() -> None:
    retriever = FixedRetriever((make_chunk(),))
    asked = "Hello, how does a robot keep its balance with the capture point?"
    given_answer = answer(asked, retriever=retriever, settings=Settings(_env_file=None))  # type: ignore[arg-type, call-arg]  # a retriever by its shape
    assert given_answer.question == asked
    assert [query.question for query in retriever.asked] == [
        "how does a robot keep its balance with the capture point?"
    ]


def test_no_question_of_the_golden_set_or_of_the_calibration_is_small_talk() -> None:
    queries = load_golden_set().queries
    golden = [text for entry in queries for text in (entry.question, entry.paraphrase) if text]
    extra = load_questions("calibration")
    for question in (*golden, *extra["near"], *extra["far"]):
        assert find_reply(Query(question)) == ""
        assert remove_small_talk(question) == question
