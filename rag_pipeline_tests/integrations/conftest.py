"""Fixtures of a retriever over the tiny book."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline.retrieval import open_retriever
from rag_pipeline_tests.retrieval.indexed_book import (
    PAGES,
    build_collection,
    make_points,
    make_settings,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rag_pipeline.retrieval import Retriever, ScoredChunk


@pytest.fixture(scope="session")
def book(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Retriever]:
    """An open retriever over a real collection of the tiny book."""
    settings = make_settings(tmp_path_factory.mktemp("book"), store_idle_s=30.0)
    build_collection(settings, make_points(PAGES))
    with open_retriever(settings) as opened:
        yield opened


def make_metadata(chunk: ScoredChunk) -> dict[str, object]:
    """Return the metadata of the passage about publishers, for which all tests ask."""
    return {
        "title": "Topics and Services",
        "section": "Publishers",
        "url": chunk.citation.url,
        "module": "module-1",
        "chapter": "1.2-ros2",
        "version": "",
        "locale": "",
        "doc_path": "module-1/1.2-ros2/topics.md",
        "content_type": chunk.metadata.content_type,
        "chunk_id": chunk.chunk_id,
        "score": chunk.score,
    }
