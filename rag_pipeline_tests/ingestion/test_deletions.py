"""Tests of the limit on how much of a book one run deletes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline.ingestion.planning import scan_docs
from rag_pipeline_tests.book import make_book, make_page, make_paragraph

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline_tests.book import Book

PAGES = {
    f"page-{number:02}.md": make_page(f"Page {number}", ("One", make_paragraph(number)))
    for number in range(12)
}


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Book:
    """Create a book with 12 indexed pages, a store in memory and a shared state."""
    monkeypatch.setenv("DATABASE_URL", "postgresql://host/rag")
    monkeypatch.setenv("STATE_NAME", "book")
    book = make_book(tmp_path, PAGES, memory=True)
    book.ingest()
    return book


def remove(book: Book, count: int) -> None:
    for name in list(PAGES)[:count]:
        (book.docs / name).unlink()


def test_a_partial_checkout_deletes_nothing_before_the_setting_allows_it(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove(book, 6)
    for request in (None, IngestionRequest(rebuild=True), IngestionRequest((), tuple(PAGES))):
        with pytest.raises(
            ConfigurationError, match=r"^MAX_DELETED_SHARE: .*6 of 12 .*`MAX_DELETED_SHARE=1 rag-p"
        ):
            book.ingest(request)
    assert len(scan_docs(book.build_context()).entries) == 12
    monkeypatch.setenv("MAX_DELETED_SHARE", "1")
    assert book.ingest().docs_deleted == 6


def test_few_documents_and_moved_ones_are_deleted(book: Book) -> None:
    remove(book, 5)
    assert book.ingest().docs_deleted == 5
    for name in list(PAGES)[5:]:
        book.move(name, f"part/{name}")
    assert book.ingest().docs_deleted == 7


def test_a_book_of_one_machine_has_no_limit(tmp_path: Path) -> None:
    book = make_book(tmp_path, PAGES, memory=True)
    book.ingest()
    remove(book, 11)
    assert book.ingest().docs_deleted == 11


def test_a_folder_of_another_book_is_named_as_such(book: Book) -> None:
    remove(book, 12)
    book.write("other.md", make_page("Other", ("One", make_paragraph(99))))
    with pytest.raises(ConfigurationError, match="Another book may have the same QDRANT_COLL"):
        book.ingest()
