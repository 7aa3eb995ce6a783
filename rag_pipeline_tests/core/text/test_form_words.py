"""Words that say in which form to answer a question."""

from __future__ import annotations

import pytest

from rag_pipeline.core.text.form_words import find_form_terms, find_form_words


@pytest.mark.parametrize(
    ("question", "phrases"),
    [
        ("A* in python code", ["python code"]),
        ("difference between topics and services", ["difference"]),
        ("zmp or capture point whats the difference", ["difference"]),
        ("how do I write a publisher", ["write"]),
        ("how to set up a workspace", ["set up"]),
        ("what does DDS mean?", ["mean"]),
        ("what does IMU stand for", ["stand for"]),
        ("definition of a rigid body", ["definition"]),
        ("action tokens meaning", ["meaning"]),
        ("How does a service differ from an action?", ["differ"]),
        ("compare Gazebo with Isaac Sim", ["compare"]),
        ("example code for a publisher", ["example code"]),
        ("C++ node example", ["example"]),
        ("python code to read a bag", ["python code"]),
    ],
)
def test_phrases_of_the_form_are_found(question: str, phrases: list[str]) -> None:
    assert [question[start:end] for start, end in find_form_words(question)] == phrases


@pytest.mark.parametrize(
    "question",
    [
        "what is python",
        "python code",
        "which python version do I need",
        "what is a finite difference",
        "what is a message definition",
        "what does the mean of a sample say",
        "code signing on macOS",
        "code coverage",
        "how do I add",
        "which files does the build write",
        "jest exit code",
        "sort a list in Rust",
        "how does the training example set look",
    ],
)
def test_a_subject_is_no_form(question: str) -> None:
    assert find_form_words(question) == []
    assert find_form_terms(question) == frozenset()


def test_a_term_that_also_occurs_elsewhere_keeps_its_weight() -> None:
    assert find_form_terms("run python with python script") == {"script"}
    assert find_form_terms("run a node with python script") == {"python", "script"}
