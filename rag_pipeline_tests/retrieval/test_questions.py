"""Questions as they are searched with: which of their tokens windows are compared with."""

from __future__ import annotations

import numpy as np
import pytest

from rag_pipeline.core.vectors import QuestionVectors
from rag_pipeline.retrieval.questions import embed_questions, keep_content_tokens
from rag_pipeline_tests.hashing_embedder import HashingEmbedder


def make_vectors(text: str, tokens: list[str]) -> QuestionVectors:
    """One row a token, told apart by its position."""
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
        (
            "What is a Jacobian?",
            ["What", "is", "a", "Jaco", "bian", "?"],
            ["Jaco", "bian"],
        ),
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
def test_tokens_of_words_that_say_something_are_kept(
    text: str, tokens: list[str], kept: list[str]
) -> None:
    vectors = make_vectors(text, tokens)
    found = keep_content_tokens(text, vectors)
    assert [text[start:end] for start, end in found.spans] == kept
    np.testing.assert_array_equal(found.dense, vectors.dense)
    rows = [vectors.spans.index(span) for span in found.spans]
    np.testing.assert_array_equal(found.tokens, vectors.tokens[rows])


def test_vectors_of_a_model_without_windows_stay_as_they_are() -> None:
    row = np.ones((1, 4), dtype=np.float32)
    vectors = QuestionVectors(row[0], row)
    assert keep_content_tokens("What is a Jacobian?", vectors) is vectors


def test_questions_and_their_parts_are_embedded_without_stop_words() -> None:
    text = "What is the difference between a service call and an action goal?"
    (question,) = embed_questions(HashingEmbedder(), [text])
    assert [text[a:b] for a, b in question.vectors.spans] == [
        "difference",
        "service",
        "call",
        "action",
        "goal?",
    ]
    assert [[part[a:b] for a, b in vectors.spans] for part, vectors in question.parts] == [
        ["service", "call"],
        ["action", "goal"],
    ]
