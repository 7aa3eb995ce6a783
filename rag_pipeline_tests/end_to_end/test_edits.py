"""Tests of edits: how many texts are embedded and points written, and which times are kept."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.models import ChunkLimits, EmbeddingText
from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline_tests.book import (
    LIMITS,
    PAGES,
    Book,
    assert_same_state,
    make_book,
    make_page,
    make_paragraph,
)
from rag_pipeline_tests.hashing_embedder import HashingEmbedder

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.ingestion.report import IngestionReport

LARGE = "module-1/large.md"


ON_EACH_STORE = pytest.mark.parametrize("book", ["edge", "memory"], indirect=True)
"""For one test of each kind of write. What is embedded does not depend on the store."""


@pytest.fixture
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Book:
    """An indexed book with a new embedder that counts its calls, by default on the memory store."""
    book = make_book(tmp_path, memory=getattr(request, "param", "memory") == "memory")
    report = book.ingest()
    assert report.docs_processed == len(PAGES)
    assert report.texts_embedded == report.chunks_created == 9
    book.embedder = HashingEmbedder()
    return book


def ingest_edit(book: Book, tmp_path: Path, texts_embedded: int) -> IngestionReport:
    """Ingest; check the number of embedded texts, and that a clean build gives equal points."""
    report = book.ingest()
    assert report.texts_embedded == texts_embedded
    assert (book.embedder.calls == 0) == (texts_embedded == 0)
    assert_same_state(book.read_state(), book.build_clean(tmp_path / "clean").read_state())
    return report


def written(report: IngestionReport) -> tuple[int, int, int]:
    """Return the numbers of created, updated and deleted chunks."""
    return report.chunks_created, report.chunks_updated, report.chunks_deleted


@ON_EACH_STORE
def test_an_unchanged_book_is_not_embedded_or_written(book: Book, tmp_path: Path) -> None:
    before = book.read_payloads()
    report = ingest_edit(book, tmp_path, 0)
    assert (report.docs_processed, report.docs_unchanged, report.chunks_unchanged) == (0, 3, 9)
    assert written(report) == (0, 0, 0)
    assert book.read_payloads() == before


def test_a_file_with_only_a_new_modification_time_is_not_processed(
    book: Book, tmp_path: Path
) -> None:
    path = book.docs / LARGE
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 5_000_000_000))
    report = ingest_edit(book, tmp_path, 0)
    assert (report.docs_processed, report.docs_unchanged) == (0, 3)
    entries = book.open_ledger(report.collection_id).entries()
    assert {entry.mtime_ns for entry in entries.values()} >= {path.stat().st_mtime_ns}
    assert {entry.run_id for entry in entries.values()} == {"run"}


@ON_EACH_STORE
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("description: About Large.\n", "description: Else.\n", id="description"),
        pytest.param("description:", "tags: [ros, urdf]\ndescription:", id="tags"),
        pytest.param("description:", "sidebar_position: 7\ndescription:", id="position"),
    ],
)
def test_an_edit_of_front_matter_updates_only_the_payloads_of_its_page(
    book: Book, tmp_path: Path, old: str, new: str
) -> None:
    before = book.read_payloads()
    book.edit(LARGE, old, new)
    report = ingest_edit(book, tmp_path, 0)
    assert written(report) == (0, 6, 0)
    after = book.read_payloads()
    for chunk_id, payload in after.items():
        assert (payload != before[chunk_id]) == (payload["doc_path"] == LARGE)
        assert payload["ingested_at"] == before[chunk_id]["ingested_at"]


@ON_EACH_STORE
@pytest.mark.parametrize("target", ["module-1/renamed.md", "module-2/deep/large.md"])
def test_a_page_that_moved_is_not_embedded_and_keeps_its_ingestion_times(
    book: Book, tmp_path: Path, target: str
) -> None:
    before = {p["content_hash"]: p["ingested_at"] for p in book.read_payloads().values()}
    book.move(LARGE, target)
    report = ingest_edit(book, tmp_path, 0)
    assert (report.docs_processed, report.docs_deleted) == (1, 1)
    assert written(report) == (6, 0, 6)
    after = {p["content_hash"]: p["ingested_at"] for p in book.read_payloads().values()}
    assert after == before


@ON_EACH_STORE
def test_a_new_paragraph_at_the_top_embeds_only_its_own_chunk(book: Book, tmp_path: Path) -> None:
    before = {p["content_hash"]: p["ingested_at"] for p in book.read_payloads().values()}
    book.edit(LARGE, "## One\n", f"{make_paragraph(40)}\n\n## One\n")
    report = ingest_edit(book, tmp_path, 1)
    assert report.docs_processed == 1
    assert report.chunks_created == 1
    for payload in book.read_payloads().values():
        known = before.get(payload["content_hash"])
        assert known is None or payload["ingested_at"] == known


def test_a_changed_word_embeds_its_chunk_and_at_most_one_neighbor(
    book: Book, tmp_path: Path
) -> None:
    book.edit(LARGE, "of robot 35 moves", "of robot 35 rolls")
    report = book.ingest()
    assert report.texts_embedded in {1, 2}
    assert report.chunks_updated == report.texts_embedded
    assert_same_state(book.read_state(), book.build_clean(tmp_path / "clean").read_state())


def test_two_sections_that_swap_places_are_not_embedded(book: Book, tmp_path: Path) -> None:
    sections = [("One", make_paragraph(3, 12)), ("Three", make_paragraph(5))]
    book.write(LARGE, make_page("Large", *sections, ("Two", make_paragraph(4))))
    ingest_edit(book, tmp_path, 0)


@ON_EACH_STORE
def test_the_points_of_a_deleted_page_are_deleted(book: Book, tmp_path: Path) -> None:
    (book.docs / LARGE).unlink()
    report = ingest_edit(book, tmp_path, 0)
    assert (report.docs_deleted, report.chunks_deleted, report.docs_discovered) == (1, 6, 2)
    assert LARGE not in book.open_ledger(report.collection_id).entries()


def test_a_renamed_heading_embeds_only_its_section(book: Book, tmp_path: Path) -> None:
    book.edit(LARGE, "## Two", "## Duo")  # the same length, so the spans of the following text stay
    report = ingest_edit(book, tmp_path, 1)
    assert report.chunks_unchanged == 8


def test_undoing_an_edit_embeds_nothing(book: Book, tmp_path: Path) -> None:
    book.edit(LARGE, "## Two", "## Second")
    book.ingest()
    book.edit(LARGE, "## Second", "## Two")
    book.embedder = HashingEmbedder()
    ingest_edit(book, tmp_path, 0)


@ON_EACH_STORE
def test_a_page_without_text_has_no_points_until_its_text_is_restored(
    book: Book, tmp_path: Path
) -> None:
    text = (book.docs / LARGE).read_text("utf-8")
    book.write(LARGE, "---\ntitle: Large\n---\n")
    report = ingest_edit(book, tmp_path, 0)
    assert (report.docs_processed, report.docs_failed, report.chunks_deleted) == (1, 0, 6)
    book.write(LARGE, text)
    assert book.ingest().texts_embedded == 0
    assert len(book.read_points()) == 9


def test_a_page_that_becomes_a_draft_is_removed(book: Book, tmp_path: Path) -> None:
    book.edit(LARGE, "description:", "draft: true\ndescription:")
    report = ingest_edit(book, tmp_path, 0)
    assert (report.docs_deleted, report.docs_discovered) == (1, 2)


def test_the_same_text_on_two_pages_is_embedded_once(book: Book, tmp_path: Path) -> None:
    text = make_page("Copy", ("Same", make_paragraph(60)))
    book.write("copy-a.md", text)
    book.write("copy-b.md", text)
    report = ingest_edit(book, tmp_path, 1)
    assert (report.docs_processed, report.chunks_created, report.embeddings_reused) == (2, 2, 1)


def test_other_chunk_sizes_index_all_pages_again(book: Book, tmp_path: Path) -> None:
    book.limits = ChunkLimits(30, 60, 120, 0)
    report = book.ingest()
    assert (report.docs_processed, report.docs_unchanged) == (3, 0)
    assert_same_state(book.read_state(), book.build_clean(tmp_path / "clean").read_state())
    book.limits = LIMITS
    book.embedder = HashingEmbedder()
    assert book.ingest().texts_embedded == 0


@ON_EACH_STORE
def test_changing_the_embedding_text_embeds_changed_texts_and_changing_back_none(
    book: Book, tmp_path: Path
) -> None:
    book.write("lead.md", "---\ntitle: Lead\n---\n\nWords first.\n\n## Below\n\nWords then.\n")
    assert book.ingest().texts_embedded == 2
    before = book.read_state()
    book.limits = replace(LIMITS, embedding_text=EmbeddingText.TITLE)
    report = ingest_edit(
        book, tmp_path, 10
    )  # text before the first heading has the same embedding text
    assert (report.docs_processed, written(report)) == (4, (0, 10, 0))
    book.limits, book.embedder = LIMITS, HashingEmbedder()
    assert book.ingest().texts_embedded == book.embedder.calls == 0
    assert_same_state(book.read_state(), before)


def test_an_unchanged_page_that_is_named_is_processed_without_any_write(book: Book) -> None:
    report = book.ingest(IngestionRequest(doc_ids=(LARGE,)))
    assert (report.docs_processed, report.docs_unchanged) == (1, 2)
    assert (report.texts_embedded, written(report)) == (0, (0, 0, 0))
