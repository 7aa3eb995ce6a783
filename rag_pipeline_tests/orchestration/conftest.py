"""Fixtures: a small book with a Dagster instance, the definitions and a vector store in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg
import pytest

from rag_pipeline.definitions import build_defs
from rag_pipeline.orchestration.resources import Ingestion
from rag_pipeline_tests.book import Book, make_book
from rag_pipeline_tests.orchestration.dagster_book import DagsterBook

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """Create a book with three pages and a store in memory. Nothing is indexed yet."""
    return make_book(tmp_path, memory=True)


@pytest.fixture
def dagster_book(book: Book) -> Iterator[DagsterBook]:
    """Return the book with a temporary Dagster instance and definitions that use the book."""
    resource = Ingestion(build=book.build_context)
    with dg.DagsterInstance.ephemeral() as instance:
        yield DagsterBook(book, instance, build_defs({"ingestion": resource}), resource)
        if "context" in vars(resource):
            resource.context.services.cache.close()
