"""Tests of BM25 term weights: equal in all processes, and according to the formula."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from rag_pipeline.adapters.embedders.bm25 import AVERAGE_LENGTH, Bm25Encoder
from rag_pipeline.core.terms import extract_terms

TEXTS = [
    "ROS 2 nodes publish JointState messages; nodes subscribe to use_sim_time.",
    "The robot's arm-controller, naïve café, 人形机器人 and 🤖.",
    "x " * 500,
]


def test_a_question_and_a_passage_have_the_same_terms() -> None:
    encoder = Bm25Encoder()
    for text in TEXTS:
        passage = encoder.encode_passages([text])[0]
        question = encoder.encode_query(text)
        assert passage.indices == question.indices
        assert len(passage.indices) == len(set(extract_terms(text)))
        assert set(question.values) == {1.0}


def test_indices_ascend_and_are_unsigned_32_bit_numbers() -> None:
    for vector in Bm25Encoder().encode_passages(TEXTS):
        assert list(vector.indices) == sorted(set(vector.indices))
        assert all(0 <= index < 2**32 for index in vector.indices)


def test_weights_follow_the_bm25_formula() -> None:
    text = "gripper gripper torque"
    length = len(extract_terms(text))
    by_count = {}
    for count in (1, 2):
        penalty = 1.2 * (1 - 0.75 + 0.75 * length / AVERAGE_LENGTH)
        by_count[count] = count * 2.2 / (count + penalty)
    vector = Bm25Encoder().encode_passages([text])[0]
    assert sorted(vector.values) == pytest.approx(sorted(by_count.values()), rel=1e-5)


@pytest.mark.parametrize("text", ["", "   ", "of the and", "!?"])
def test_a_text_without_terms_has_an_empty_vector(text: str) -> None:
    encoder = Bm25Encoder()
    assert encoder.encode_query(text).indices == ()
    assert encoder.encode_passages([text])[0].indices == ()


def test_an_encoder_in_another_process_gives_the_same_weights() -> None:
    code = (
        "import json, sys; from rag_pipeline.adapters.embedders.bm25 import Bm25Encoder; "
        "vectors = Bm25Encoder().encode_passages(json.load(sys.stdin)); "
        "print(json.dumps([[v.indices, v.values] for v in vectors]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(TEXTS),
        capture_output=True,
        text=True,
        check=True,
    )
    here = [[list(v.indices), list(v.values)] for v in Bm25Encoder().encode_passages(TEXTS)]
    assert json.loads(done.stdout) == here
