"""An audit beside an ingestion: neither makes the other fail, and half a work is no finding."""

from __future__ import annotations

import threading
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.state.locks import hold_lock
from rag_pipeline.core.errors import StoreLockedError
from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline.ingestion.upkeep.repair import audit_index
from rag_pipeline_tests.book import PAGES, Book, make_book, replace_services
from rag_pipeline_tests.hashing_embedder import HashingEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from rag_pipeline.core.vectors import EmbeddingUsage, FloatMatrix, Window
    from rag_pipeline.ingestion.context import IngestionContext

LARGE = "module-1/large.md"


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """Three pages in an embedded store, indexed."""
    book = make_book(tmp_path)
    book.ingest()
    return book


def damage(book: Book, *doc_ids: str) -> None:
    """Delete all points of pages."""
    with closing(book.build_context().services.catalog.open_current()) as store:
        points = store.scroll()
        store.delete([point.point_id for point in points if point.payload["doc_path"] in doc_ids])


def watch_lock(book: Book, before: Callable[[], None]) -> IngestionContext:
    """A context that tells when the lock is asked for."""
    context = book.build_context()

    def lock(timeout_s: float | None = None) -> AbstractContextManager[None]:
        before()
        return context.services.lock(30.0 if timeout_s is None else timeout_s)

    return replace_services(context, lock=lock)


class PausingEmbedder(HashingEmbedder):
    """Calls back before it embeds, when a run has written half of what it will."""

    def __init__(self) -> None:
        super().__init__()
        self.pause: Callable[[], None] = lambda: None

    def embed_passages(
        self, texts: Sequence[str], windows: Sequence[Sequence[Window]] = ()
    ) -> tuple[FloatMatrix, EmbeddingUsage]:
        self.pause()
        return super().embed_passages(texts, windows)


def test_an_ingestion_in_flight_is_no_finding(book: Book) -> None:
    book.embedder = embedder = PausingEmbedder()
    book.edit(LARGE, "## Two", "## Duo")
    asked, found = threading.Event(), list[object]()
    context = watch_lock(book, asked.set)
    audit = threading.Thread(target=lambda: found.append(audit_index(context).findings))

    def start_audit() -> None:
        audit.start()
        assert asked.wait(20)  # it has seen the half, and asks for the lock that the run holds

    embedder.pause = start_audit
    assert book.ingest().docs_processed == 1
    audit.join(20)
    assert found == [()]


def test_a_sound_store_is_audited_without_the_lock(book: Book) -> None:
    with hold_lock(book.state / "ingest.lock", 0.0):
        assert audit_index(book.build_context()).findings == ()


def test_what_cannot_be_looked_at_again_is_no_finding_but_an_error(book: Book) -> None:
    damage(book, LARGE)
    with (
        hold_lock(book.state / "ingest.lock", 0.0),
        pytest.raises(StoreLockedError, match="INGEST_LOCK_TIMEOUT_S"),
    ):
        audit_index(book.build_context())
    assert audit_index(book.build_context()).doc_paths == (LARGE,)


def test_the_lock_is_held_for_a_few_documents_at_a_time(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_pipeline.ingestion.upkeep.repair._PAGE_DOCS", 1)
    damage(book, *PAGES)
    context, held = book.build_context(), list[int]()

    @contextmanager
    def lock(timeout_s: float | None = None) -> Iterator[None]:
        with hold_lock(book.state / "ingest.lock", timeout_s or 0.0):  # free for each page
            held.append(1)
            yield

    monkeypatch.setattr("rag_pipeline.ingestion.upkeep.repair._GIVE_WAY_S", 0.0)
    report = audit_index(replace_services(context, lock=lock))
    assert set(report.doc_paths) == set(PAGES)
    assert len(report.findings) == 9
    assert len(held) == len(PAGES)


def test_a_page_that_was_removed_meanwhile_is_no_finding(book: Book) -> None:
    (book.docs / LARGE).unlink()
    damage(book, LARGE)
    assert audit_index(watch_lock(book, lambda: remove(book))).findings == ()


def remove(book: Book) -> None:
    assert book.ingest().docs_deleted == 1


def test_points_of_a_page_that_was_lost_and_is_indexed_meanwhile_are_none(book: Book) -> None:
    collection_id = str(book.build_context().services.catalog.current_id())
    book.forget(collection_id)
    assert len(audit_index(book.build_context()).strays) == 9
    assert audit_index(watch_lock(book, lambda: index(book))).findings == ()


def index(book: Book) -> None:
    assert book.ingest().docs_processed == len(PAGES)


def test_a_rebuild_meanwhile_is_what_is_audited(book: Book) -> None:
    before = book.build_context().services.catalog.current_id()
    damage(book, LARGE)
    rebuilt = list[str]()

    def rebuild() -> None:
        if not rebuilt:
            rebuilt.append(book.ingest(IngestionRequest(rebuild=True)).collection_id)

    report = audit_index(watch_lock(book, rebuild))
    assert (report.collection_id, report.findings) == (rebuilt[0], ())
    assert report.collection_id != before
