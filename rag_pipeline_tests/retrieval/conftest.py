"""Fixtures of a tiny book: its points, its settings with a collection, and a retriever."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline.retrieval import open_retriever
from rag_pipeline_tests.retrieval.disturbances import FlakySession
from rag_pipeline_tests.retrieval.indexed_book import (
    PAGES,
    build_collection,
    make_points,
    make_settings,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rag_pipeline.core.settings import Settings
    from rag_pipeline.core.vectors import Point
    from rag_pipeline.retrieval import Retriever


@pytest.fixture(scope="session")
def book_points() -> list[Point]:
    """The points of the tiny book, embedded once for all tests."""
    return make_points(PAGES)


@pytest.fixture(scope="session")
def book_settings(tmp_path_factory: pytest.TempPathFactory, book_points: list[Point]) -> Settings:
    """Settings of the tiny book; its collection exists and has all points."""
    settings = make_settings(tmp_path_factory.mktemp("book"), store_idle_s=30.0)
    build_collection(settings, book_points)
    return settings


@pytest.fixture
def retriever(book_settings: Settings) -> Iterator[Retriever]:
    """An open retriever over the collection of the tiny book."""
    with open_retriever(book_settings) as opened:
        yield opened


@pytest.fixture
def flaky(retriever: Retriever) -> FlakySession:
    """A session over the tiny book that can be made to fail or hang."""
    return FlakySession(retriever.session)
