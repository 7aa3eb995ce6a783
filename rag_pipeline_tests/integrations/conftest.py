"""Fixtures of a retriever over the tiny book."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline_tests.retrieval.indexed_book import PAGES, open_book

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rag_pipeline.retrieval import Retriever, ScoredChunk


@pytest.fixture(scope="session")
def book(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Retriever]:
    """An open retriever over a real collection of the tiny book."""
    with open_book(tmp_path_factory.mktemp("book"), PAGES) as opened:
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
