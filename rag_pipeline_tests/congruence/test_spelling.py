"""Both kinds of store correct misspelled words in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.embedders.bm25 import Bm25Encoder
from rag_pipeline.core.ids import PointId
from rag_pipeline.core.vectors import ChunkVectors, Point
from rag_pipeline.retrieval.spelling import correct_question
from rag_pipeline_tests.congruence.points import SPACE, make_rows

if TYPE_CHECKING:
    from rag_pipeline.core.protocols import CollectionCatalog

TEXTS = (
    "The quaternion describes a rotation without gimbal lock.",
    "A form of motion planning plans a path to a pose.",
    "The platform carries the planner. The planner plans again.",
    "A sensor measures the moment. Each moment counts.",
    "The momentum of the platform is conserved in that moment.",
    "A senior engineer calibrates the sensor.",
)


def make_points() -> list[Point]:
    sparse = Bm25Encoder().encode_passages(TEXTS)
    rows = make_rows(1, len(TEXTS))
    return [
        Point(
            PointId(number + 1),
            ChunkVectors(rows[number], rows[number : number + 1]),
            sparse[number],
            {"chunk_id": f"{number + 1:016x}", "text": text},
        )
        for number, text in enumerate(TEXTS)
    ]


@pytest.mark.parametrize(
    ("word", "corrected"),
    [
        ("quaternoin", "quaternion"),
        ("quartenion", "quaternion"),
        ("momnet", "moment"),
        ("momentm", "momentum"),  # "moment" would be the word without an ending
        ("senxor", "sensor"),  # "senior" is in fewer chunks
        ("plannre", "planner"),
        ("plaform", "platform"),
        ("rotatoin", "rotation"),
        ("xylophone", None),
    ],
)
def test_a_word_is_corrected_alike_in_each_store(
    catalog: CollectionCatalog, word: str, corrected: str | None
) -> None:
    store = catalog.create(SPACE)
    store.upsert(make_points())
    found = correct_question(store, Bm25Encoder(), f"the {word}?", [word])
    store.close()
    assert found == (corrected and f"the {corrected}?")
