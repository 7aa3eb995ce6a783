"""Rerankers, which decide the order of the passages."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from rag_pipeline.core.errors import ResultInvalidError
from rag_pipeline.retrieval import Query, Retriever, open_retriever
from rag_pipeline_tests.retrieval.retriever.questions import QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rag_pipeline.core.settings import Settings


class _Scores:
    """A `Reranker` whose scores are computed by a function from the number of passages."""

    def __init__(self, score: Callable[[int], object]) -> None:
        self._score = score

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        assert question
        return cast("list[float]", self._score(len(texts)))


@pytest.mark.parametrize(
    ("score", "shown"),
    [
        (lambda count: [at / count for at in range(count)], [7 / 8, 6 / 8]),
        (lambda count: [3.0 + at for at in range(count)], [1.0, 1.0]),  # limited after sorting
    ],
)
def test_a_reranker_decides_the_order_and_scores_above_1_become_1(
    book_settings: Settings,
    retriever: Retriever,
    score: Callable[[int], object],
    shown: list[float],
) -> None:
    plain = retriever.retrieve(Query(QUESTIONS[0], top_k=20))
    retriever.close()
    with open_retriever(book_settings, reranker=_Scores(score)) as other:
        turned = other.retrieve(Query(QUESTIONS[0], top_k=2))
    assert [hit.chunk_id for hit in turned.chunks] == [
        hit.chunk_id for hit in (plain.chunks[7], plain.chunks[6])
    ]
    assert [hit.score for hit in turned.chunks] == shown


@pytest.mark.parametrize(
    ("score", "said"),
    [
        (lambda count: [0.5] * (count - 1), "returned 7 scores"),
        (lambda count: [0.5] * (count + 1), "returned 9 scores"),
        (lambda count: [0.5, math.nan] + [0.5] * (count - 2), "7 finite"),
        (lambda count: [math.inf] * count, "0 finite"),
    ],
)
def test_a_reranker_must_return_one_finite_score_for_each_passage(
    book_settings: Settings, score: Callable[[int], object], said: str
) -> None:
    with (
        open_retriever(book_settings, reranker=_Scores(score)) as other,
        pytest.raises(ResultInvalidError, match=f"{said}.*for 8 passages"),
    ):
        other.retrieve(Query(QUESTIONS[0], top_k=2))


def test_numpy_scores_of_a_reranker_become_python_floats(book_settings: Settings) -> None:
    reranker = _Scores(lambda count: np.linspace(0, 1, count, dtype=np.float32))
    with open_retriever(book_settings, reranker=reranker) as other:
        found = other.retrieve(Query(QUESTIONS[0], top_k=2))
    assert [type(hit.score) for hit in found.chunks] == [float, float]
