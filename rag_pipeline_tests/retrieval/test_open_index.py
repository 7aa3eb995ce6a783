"""What is cached of an open collection, over a real store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.embedders.bm25 import Bm25Encoder
from rag_pipeline.core.ids import PointId
from rag_pipeline.retrieval import Query, open_index
from rag_pipeline.retrieval.open_index import OpenIndex
from rag_pipeline_tests.retrieval.indexed_book import open_book

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rag_pipeline.core.protocols import StoredPoint
    from rag_pipeline.retrieval import Retriever


@pytest.mark.parametrize(("lasting", "reads"), [(True, 1), (False, 2)])
def test_only_a_lasting_collection_is_read_once(
    retriever: Retriever, monkeypatch: pytest.MonkeyPatch, *, lasting: bool, reads: int
) -> None:
    with retriever.session.use() as index:
        ids = [point.point_id for point in index.scroll()][:3]
        asked: list[object] = []
        fetch = index.fetch

        def count(wanted: Sequence[PointId]) -> list[StoredPoint]:
            asked.append(wanted)
            return fetch(wanted)

        monkeypatch.setattr(index, "fetch", count)
        cache = OpenIndex(index, Bm25Encoder(), lasting=lasting)
        first = cache.find_chunks(ids)
        assert cache.find_chunks(ids) == first
        assert list(first) == ids
        assert len(asked) == reads


def test_the_cache_is_bounded_and_leaves_out_missing_points(
    retriever: Retriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_index, "MAX_CACHED_CHUNKS", 2)
    with retriever.session.use() as index:
        ids = [point.point_id for point in index.scroll()][:3]
        cache = OpenIndex(index, Bm25Encoder(), lasting=True)
        for _ in range(2):
            assert list(cache.find_chunks([*ids, PointId(1)])) == ids
        assert len(cache._chunks) == 2  # noqa: SLF001  # the bound is not visible outside


def test_abbreviations_are_read_from_the_chunks_that_spell_them_out(tmp_path: Path) -> None:
    pages = {
        "boxes.md": "# Boxes\n\n## Duplicates\n\nNon-maximum suppression (NMS) drops duplicates.\n",
        "more.md": "# More\n\n## Thresholds\n\nNMS needs a threshold.\n\n## Noise\n\nA filter.\n",
    }
    with open_book(tmp_path, pages) as opened:
        asked = ["what is NMS", "non-maximum suppression", "filter"]
        short, long, other = opened.read_index(
            lambda index: index.find_abbreviations(
                asked, index.store.search_many(index.ask_marks(asked))
            )
        )
        assert [one.long for one in short] == ["Non-maximum suppression"]
        assert short == long
        assert other == ()
        hits = opened.retrieve(Query("threshold of non-maximum suppression")).chunks
        assert hits[0].metadata.section_heading == "Thresholds"
        evidence = opened.retrieve(Query("NMS")).evidence
    assert evidence is not None
    assert evidence.abbreviations == short
    assert [word.word for word in evidence.words] == ["NMS"]
