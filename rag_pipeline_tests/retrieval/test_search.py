"""Preparing questions: splitting, embedding, and dropping the tokens of stop words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.adapters.embedders.bm25 import Bm25Encoder
from rag_pipeline.core.vectors import QuestionVectors
from rag_pipeline.retrieval import Query
from rag_pipeline.retrieval.search import (
    MAX_PARTS,
    keep_content_tokens,
    prepare_searches,
    split_question,
)
from rag_pipeline_tests.hashing_embedder import HashingEmbedder


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
def test_a_compound_question_is_split_into_its_parts(question: str, parts: tuple[str, ...]) -> None:
    assert split_question(question) == parts


@pytest.mark.parametrize(
    "question",
    [
        "What is a Jacobian?",
        "My robot falls over sideways. How do I stop that?",
        "How do nodes and topics work?",
        "Is it between the two?",
        "and how",
        "debug a node in VS Code",
        "",
        "vs",
    ],
)
def test_a_simple_question_is_not_split(question: str) -> None:
    assert split_question(question) == ()


@given(st.text(max_size=300))
def test_any_text_has_zero_two_or_three_parts_that_occur_in_it(question: str) -> None:
    parts = split_question(question)
    assert len(parts) in {0, 2, MAX_PARTS}
    assert all(part and part in " ".join(question.split()) for part in parts)


@pytest.mark.parametrize(
    "question", ["how does a" + " " * 4_900 + "relate", "\t" * 4_999 + "x", "a " * 2_500]
)
def test_a_long_question_is_split_before_the_test_times_out(question: str) -> None:
    assert split_question(question) == ()  # runs of blanks took hours before a fix


def make_vectors(text: str, tokens: list[str]) -> QuestionVectors:
    """Return vectors with a distinct unit row for each token of the text."""
    spans, at = [], 0
    for token in tokens:
        start = text.index(token, at)
        at = start + len(token)
        spans.append((start, at))
    rows = np.eye(len(tokens), dtype=np.float32)
    return QuestionVectors(rows[0], rows, tuple(spans))


@pytest.mark.parametrize(
    ("text", "tokens", "kept"),
    [
        ("What is a Jacobian?", ["What", "is", "a", "Jaco", "bian", "?"], ["Jaco", "bian"]),
        (
            "How does `use_sim_time` work?",
            ["How", "does", "`", "use", "_", "sim", "_", "time", "`", "work", "?"],
            ["use", "_", "sim", "_", "time", "work"],
        ),
        ("torque", ["torque"], ["torque"]),
        ("Who are you?", ["Who", "are", "you", "?"], ["Who", "are", "you", "?"]),
        ("?!", ["?", "!"], ["?", "!"]),
        ("什么是 力矩", ["什", "么", "是", "力", "矩"], ["什", "么", "是", "力", "矩"]),
    ],
)
def test_only_tokens_of_content_words_are_kept_if_there_are_any(
    text: str, tokens: list[str], kept: list[str]
) -> None:
    vectors = make_vectors(text, tokens)
    found = keep_content_tokens(text, vectors)
    assert [text[start:end] for start, end in found.spans] == kept
    np.testing.assert_array_equal(found.dense, vectors.dense)
    rows = [vectors.spans.index(span) for span in found.spans]
    np.testing.assert_array_equal(found.tokens, vectors.tokens[rows])


def test_vectors_of_a_model_without_windows_are_not_changed() -> None:
    row = np.ones((1, 4), dtype=np.float32)
    vectors = QuestionVectors(row[0], row)
    assert keep_content_tokens("What is a Jacobian?", vectors) is vectors


def test_questions_and_their_parts_are_embedded_without_stop_words_and_form_words() -> None:
    text = "What is the difference between a service call and an action goal?"
    (question,) = prepare_searches(HashingEmbedder(), Bm25Encoder(), [Query(text)])
    assert [text[a:b] for a, b in question.vectors.spans] == ["service", "call", "action", "goal?"]
    assert [[part.text[a:b] for a, b in part.vectors.spans] for part in question.parts] == [
        ["service", "call"],
        ["action", "goal"],
    ]
