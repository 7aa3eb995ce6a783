"""Tests of an audit that runs while an ingestion changes the collection."""

from __future__ import annotations

import threading
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rag_pipeline.core.ids import DocId
from rag_pipeline.ingestion.audit import audit_collection, audit_index
from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline.ingestion.planning import scan_docs
from rag_pipeline_tests.book import PAGES, Book, make_book, replace_services
from rag_pipeline_tests.hashing_embedder import HashingEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from rag_pipeline.core.protocols import CollectionCatalog, PointStore
    from rag_pipeline.core.vectors import EmbeddingUsage, FloatMatrix, Window
    from rag_pipeline.ingestion.context import IngestionContext

LARGE = "module-1/large.md"


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """A book of three pages, indexed into an embedded store."""
    book = make_book(tmp_path)
    book.ingest()
    return book


def damage(book: Book, *doc_ids: str) -> None:
    """Delete all points of some documents from the store."""
    with closing(book.build_context().services.catalog.open_current()) as store:
        points = store.scroll()
        store.delete([point.point_id for point in points if point.payload["doc_path"] in doc_ids])


def watch_lock(book: Book, before: Callable[[], None]) -> IngestionContext:
    """Return a context that calls `before` each time the ingestion lock is requested."""
    context = book.build_context()

    def lock(timeout_s: float | None = None) -> AbstractContextManager[None]:
        before()
        return context.services.lock(30.0 if timeout_s is None else timeout_s)

    return replace_services(context, lock=lock)


class PausingEmbedder(HashingEmbedder):
    """An embedder that calls a function before it embeds, in the middle of a run's writes."""

    def __init__(self) -> None:
        super().__init__()
        self.pause: Callable[[], None] = lambda: None

    def embed_passages(
        self, texts: Sequence[str], windows: Sequence[Sequence[Window]] = ()
    ) -> tuple[FloatMatrix, EmbeddingUsage]:
        self.pause()
        return super().embed_passages(texts, windows)


def test_a_running_ingestion_causes_no_findings(book: Book) -> None:
    book.embedder = embedder = PausingEmbedder()
    book.edit(LARGE, "## Two", "## Duo")
    lock_requested, found = threading.Event(), list[object]()
    context = watch_lock(book, lock_requested.set)
    audit = threading.Thread(target=lambda: found.append(audit_index(context).findings))

    def start_audit() -> None:
        audit.start()
        # By then the audit has seen the unfinished writes, and waits for the lock of the run.
        assert lock_requested.wait(20)

    embedder.pause = start_audit
    assert book.ingest().docs_processed == 1
    audit.join(20)
    assert found == [()]


class CountingCatalog:
    """A catalog that counts its openings, and that another process waits for always or never."""

    def __init__(self, catalog: CollectionCatalog, *, wanted: bool) -> None:
        self._catalog, self._wanted = catalog, wanted
        self.openings = 0

    def open(self, collection_id: str) -> PointStore:
        self.openings += 1
        return self._catalog.open(collection_id)

    def is_wanted(self) -> bool:
        return self._wanted


@pytest.mark.parametrize("limit", [1, 5, 8_192])
@pytest.mark.parametrize("wanted", [False, True])
def test_the_store_is_closed_only_after_many_chunks_or_if_another_process_waits(
    book: Book, monkeypatch: pytest.MonkeyPatch, limit: int, *, wanted: bool
) -> None:
    audit = "rag_pipeline.ingestion.audit"
    monkeypatch.setattr(f"{audit}._PAGE_CHUNKS", 1)  # one document at a time
    monkeypatch.setattr(f"{audit}._OPENING_CHUNKS", limit)
    monkeypatch.setattr(f"{audit}._GIVE_WAY_S", 0.0)
    damage(book, "intro.md")
    context = book.build_context()
    catalog: Any = CountingCatalog(context.services.catalog, wanted=wanted)
    scan = scan_docs(context)
    entries = scan.entries
    found = audit_collection(replace_services(context, catalog=catalog), scan)
    assert found.doc_paths == ("intro.md",)
    sizes, openings = [entries[doc_id].chunk_count for doc_id in sorted(entries)], 0
    sizes[sorted(entries).index(DocId("intro.md"))] = 0
    read = limit
    for size in sizes:
        if read >= limit or wanted:
            openings, read = openings + 1, 0
        read += size
    assert catalog.openings == openings


def test_the_lock_is_held_for_a_few_documents_at_a_time(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_pipeline.ingestion.audit._PAGE_DOCS", 1)
    damage(book, *PAGES)
    context, times_held = book.build_context(), list[int]()

    @contextmanager
    def lock(timeout_s: float | None = None) -> Iterator[None]:
        # With a timeout of 0 this fails if the lock is still held for the previous document.
        with book.open_state().locks.hold("book", timeout_s or 0.0):
            times_held.append(1)
            yield

    monkeypatch.setattr("rag_pipeline.ingestion.audit._GIVE_WAY_S", 0.0)
    report = audit_index(replace_services(context, lock=lock))
    assert set(report.doc_paths) == set(PAGES)
    assert len(report.findings) == 9
    assert len(times_held) == len(PAGES)


def test_a_page_that_is_deleted_during_the_audit_is_not_reported(book: Book) -> None:
    (book.docs / LARGE).unlink()
    damage(book, LARGE)
    assert audit_index(watch_lock(book, lambda: remove(book))).findings == ()


def remove(book: Book) -> None:
    """Run an ingestion that deletes one page."""
    assert book.ingest().docs_deleted == 1


def test_pages_that_are_indexed_during_the_audit_are_not_reported(book: Book) -> None:
    collection_id = str(book.build_context().services.catalog.current_id())
    book.forget(collection_id)
    found = audit_index(book.build_context()).findings
    assert [finding.kind for finding in found] == ["stale"] * 3
    assert audit_index(watch_lock(book, lambda: index(book))).findings == ()


def index(book: Book) -> None:
    """Run an ingestion that indexes all pages."""
    assert book.ingest().docs_processed == len(PAGES)


def test_after_a_rebuild_during_the_audit_the_new_collection_is_audited(book: Book) -> None:
    before = book.build_context().services.catalog.current_id()
    damage(book, LARGE)
    rebuilt = list[str]()

    def rebuild() -> None:
        if not rebuilt:
            rebuilt.append(book.ingest(IngestionRequest(rebuild=True)).collection_id)

    report = audit_index(watch_lock(book, rebuild))
    assert (report.collection_id, report.findings) == (rebuilt[0], ())
    assert report.collection_id != before
