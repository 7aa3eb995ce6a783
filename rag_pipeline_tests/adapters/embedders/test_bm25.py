"""Tests of BM25 term weights: equal in all processes, and according to the formula."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import islice, product

import pytest

from rag_pipeline.adapters.embedders.bm25 import AVERAGE_LENGTH, Bm25Encoder
from rag_pipeline.core.text.terms import extract_terms

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


def test_two_terms_with_one_id_share_its_weight() -> None:
    encoder = Bm25Encoder()
    terms = ["".join(letters) for letters in islice(product("bcdfghjkl", repeat=6), 200_000)]
    first_terms: dict[int, str] = {}
    for term, vector in zip(terms, encoder.encode_terms(terms), strict=True):
        other = first_terms.setdefault(vector.indices[0], term)
        if other != term:
            break
    else:
        pytest.fail("no two terms have the same id")
    vectors = encoder.encode_passages([f"{term} {other} {other} joint"] * 20)
    assert len(set(vectors)) == 1
    assert len(vectors[0].indices) == 2
    shared = encoder.encode_passages([f"{term} {term} {term} joint"])[0]
    assert vectors[0].indices == shared.indices
    assert vectors[0].values == pytest.approx(shared.values, rel=1e-5)
