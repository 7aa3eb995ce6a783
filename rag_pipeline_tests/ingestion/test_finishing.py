"""Tests of the end of an ingestion: what it writes to the ledger of unchanged files."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.ingestion.planning import refresh_ledger, refresh_ledger_if_idle, scan_docs
from rag_pipeline_tests.book import Book, make_book
from rag_pipeline_tests.ingestion.records import make_discovered, make_entry

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.core.protocols import Ledger
    from rag_pipeline.ingestion.planning import Scan


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """An indexed book of three pages, whose first page has a new modification time."""
    book = make_book(tmp_path, memory=True)
    book.ingest()
    os.utime(book.docs / "intro.md", ns=(7, 7))
    return book


def open_ledger(book: Book, scan: Scan) -> Ledger:
    """Open the ledger of the scanned collection."""
    return book.build_context().services.open_ledger(scan.collection_id)


def test_the_mark_of_a_run_that_began_meanwhile_stays_in_the_ledger(tmp_path: Path) -> None:
    ledger, entry = Book(tmp_path).open_ledger("c"), make_entry("a.md")
    entry = ledger.record(entry)
    begun = ledger.record_begun(replace(entry, sha256="", size_bytes=-1, mtime_ns=0))
    refresh_ledger(ledger, [make_discovered("a.md", mtime_ns=9)], {entry.doc_id: entry})
    assert ledger.entries() == {"a.md": begun}


def test_an_entry_that_another_run_deleted_does_not_come_back(tmp_path: Path) -> None:
    ledger, entry = Book(tmp_path).open_ledger("c"), replace(make_entry("a.md"), version=1)
    refresh_ledger(ledger, [make_discovered("a.md", mtime_ns=9)], {entry.doc_id: entry})
    assert ledger.entries() == {}


def test_new_modification_times_wait_for_the_end_of_a_running_ingestion(book: Book) -> None:
    context = book.build_context()
    scan = scan_docs(context)
    with context.services.lock():
        refresh_ledger_if_idle(book.build_context(), scan)
        assert open_ledger(book, scan).entries() == scan.entries
