"""Tests of runs that reuse an earlier scan of the docs folder, and of the events of a run."""

from __future__ import annotations

import threading
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from rag_pipeline.core.errors import DocsFolderError, EmbeddingServiceError, StoreError
from rag_pipeline.core.ids import DocId
from rag_pipeline.core.models import DocFailure, Stage
from rag_pipeline.core.vectors import ChunkVectors, Point, SparseVector
from rag_pipeline.ingestion import planning
from rag_pipeline.ingestion import run as run_module
from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline.ingestion.events import RunEnded, RunFailed, RunPlanned, StageDone
from rag_pipeline.ingestion.planning import hash_plan, scan_docs
from rag_pipeline.ingestion.run import run_ingestion
from rag_pipeline_tests.book import PAGES, Book, assert_same_state, make_book, replace_services
from rag_pipeline_tests.hashing_embedder import HashingEmbedder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rag_pipeline.core.protocols import PointStore
    from rag_pipeline.ingestion.context import IngestionContext
    from rag_pipeline.ingestion.events import IngestionEvent
    from rag_pipeline.ingestion.planning import Scan


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """A book of three pages that is not indexed."""
    return make_book(tmp_path, memory=True)


def run(book: Book, earlier: Scan | None = None) -> list[IngestionEvent]:
    """Ingest all changes and return the events."""
    return list(run_ingestion(book.build_context(), IngestionRequest(), "run", earlier))


def test_a_run_reuses_the_scan_of_its_caller(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = scan_docs(book.build_context())
    monkeypatch.setattr(planning, "discover_docs", None)
    run(book, scan)
    assert {str(payload["doc_path"]) for payload in book.read_payloads().values()} == set(PAGES)


def test_a_run_with_an_outdated_scan_does_not_delete_newly_indexed_pages(book: Book) -> None:
    book.ingest()
    scan = scan_docs(book.build_context())
    book.write("new.md", PAGES["intro.md"])
    book.ingest()
    (planned, ended) = run(book, scan)
    assert isinstance(planned, RunPlanned)
    assert isinstance(ended, RunEnded)
    paths = {str(payload["doc_path"]) for payload in book.read_payloads().values()}
    assert paths == {*PAGES, "new.md"}


def test_events_come_in_the_order_of_the_work(book: Book) -> None:
    book.write("broken.md", "---\ntitle: [\n---\n")
    first, *rest, last = run(book)
    assert isinstance(first, RunPlanned)
    assert isinstance(last, RunEnded)
    assert set(first.doc_ids) == {*PAGES, "broken.md"}
    by_doc: dict[str, list[Stage]] = {}
    for event in rest:
        assert isinstance(event, (StageDone, DocFailure))
        if isinstance(event, StageDone):
            by_doc.setdefault(event.doc_id, []).append(event.stage)
    assert by_doc == {name: list(Stage) for name in PAGES} | {"broken.md": [Stage.DISCOVERED]}
    (failure,) = [event for event in rest if isinstance(event, DocFailure)]
    assert failure.doc_path == "broken.md"


def test_a_page_that_is_renamed_during_a_run_is_named_and_indexed_by_the_next(book: Book) -> None:
    events = run_ingestion(book.build_context(), IngestionRequest(), "run")
    next(events)  # the docs folder has been read
    book.move("intro.md", "start.md")
    (failure,) = [event for event in events if isinstance(event, DocFailure)]
    assert failure.message.startswith("intro.md: it was deleted or renamed during this run. ")
    report = book.ingest()
    assert (report.docs_processed, report.docs_deleted, report.docs_failed) == (1, 1, 0)


def test_pages_with_the_same_address_are_named_at_the_end(book: Book) -> None:
    book.write("a.md", "---\nslug: /same\n---\n\n# One\n\nText.\n\n## Part\n\nMore text.\n")
    book.write("b/c.md", "---\nslug: /same\n---\n\n# Two\n\nOther text.\n")
    ended = run(book)[-1]
    assert isinstance(ended, RunEnded)
    (warning,) = ended.warnings
    assert warning.startswith("a.md and b/c.md have the same address ")
    assert "/same," in warning


class FullDiskStore:
    """A store whose changes cannot be written to the disk."""

    def __init__(self, store: PointStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # the type of the store's attribute
        """Return the attribute of the store."""
        return getattr(self._store, name)

    @contextmanager
    def write_together(self) -> Iterator[None]:
        """Run the changes, then fail."""
        yield
        raise StoreError("the disk is full")


def test_no_document_counts_as_indexed_if_its_points_did_not_reach_the_disk(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = book.build_context()
    catalog = context.services.catalog
    opened = catalog.open
    with monkeypatch.context() as patch:
        patch.setattr(catalog, "open", lambda *arguments: FullDiskStore(opened(*arguments)))
        report = book.ingest(context=context)
    assert {failure.doc_path for failure in report.failures} == set(PAGES)
    assert {failure.message for failure in report.failures} == {"the disk is full"}
    assert report.docs_processed == 0
    assert book.ingest().docs_processed == len(PAGES)
    assert scan_docs(book.build_context()).is_up_to_date


def test_no_document_counts_as_deleted_if_the_deletions_did_not_reach_the_disk(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    book.ingest()
    gone = ["intro.md", "module-1/large.md"]
    for name in gone:
        (book.docs / name).unlink()
    context = book.build_context()
    opened = context.services.catalog.open
    with monkeypatch.context() as patch:
        patch.setattr(
            context.services.catalog, "open", lambda *given: FullDiskStore(opened(*given))
        )
        report = book.ingest(context=context)
    found = [(failure.doc_path, failure.message) for failure in report.failures]
    assert found == [(name, "the disk is full") for name in gone]
    assert list(scan_docs(book.build_context()).delete) == gone
    assert book.ingest().docs_deleted == len(gone)


def test_a_killed_run_that_left_a_new_vector_with_an_old_payload_is_repaired(book: Book) -> None:
    book.ingest()
    before = book.read_state()
    with closing(book.catalog.open_current()) as store:
        ledger = book.open_ledger(store.collection_id)
        point = store.scroll(with_vectors=True)[0]
        assert point.vectors is not None
        turned = ChunkVectors(-point.vectors.dense, -point.vectors.windows)
        store.upsert([Point(point.point_id, turned, SparseVector((1,), (1.0,)), point.payload)])
    entry = ledger.entries()[DocId(str(point.payload["doc_path"]))]
    ledger.record_begun(replace(entry, sha256="", size_bytes=-1, mtime_ns=0))
    assert book.ingest().docs_processed == 1
    assert_same_state(book.read_state(), before)


def test_a_run_that_an_error_aborts_ends_with_a_failure_event(tmp_path: Path) -> None:
    book = make_book(tmp_path, {}, memory=True)
    events = run_ingestion(book.build_context(), IngestionRequest(), "run")
    failed = next(events)
    assert isinstance(failed, RunFailed)
    assert isinstance(failed.error, DocsFolderError)
    with pytest.raises(DocsFolderError):
        next(events)


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        ("---\ntitle: Robots\n\n# Text\n\nOne.\n", 1),
        ("---\r\ntags:\r\n  - a\r\n\r\nOne.\r\n----\r\n", 1),
        ("---\ntitle: Robots\n---\n\nOne.\n", 0),
        ("---\n\nA rule: and text.\n", 0),
        ("---\nhttps://example.org is an address.\n", 0),
    ],
)
def test_front_matter_without_its_last_line_is_noted(book: Book, text: str, notes: int) -> None:
    book.write("open.md", text)
    warnings = [found for event in run(book) for found in getattr(event, "warnings", ())]
    begin = "open.md: the front matter has no `---`"
    assert [each.startswith(begin) for each in warnings] == [True] * notes


def test_a_page_that_is_not_utf8_is_indexed_and_the_report_names_its_line(book: Book) -> None:
    path = book.write("latin.md", "")
    path.write_bytes(b"# Caf\xc3\xa9\r\n\r\nA caf\xe9.\r\n")
    report = book.ingest()
    assert report.docs_processed == len(PAGES) + 1
    (warning,) = report.warnings
    assert warning.startswith("latin.md: line 3 contains bytes that are not UTF-8.")


def test_a_document_that_another_living_run_has_claimed_is_left_to_it(tmp_path: Path) -> None:
    book = make_book(tmp_path)
    book.ingest()
    changed = [DocId("intro.md"), DocId("module-1/large.md")]
    for doc_id in changed:
        book.edit(doc_id, "title: ", "title: Other ")
    state = book.open_state()

    def ingest() -> int:
        context = replace_services(book.build_context(), run_locks=state)
        scan = scan_docs(context)
        docs = [doc for doc in scan.discovery.docs if doc.doc_id in changed]
        plan = hash_plan(context, scan.collection_id, docs)
        return book.ingest(IngestionRequest(tuple(changed), plan=plan), context).docs_processed

    ledger = book.open_ledger(book.build_context().services.catalog.current_id() or "")
    lock = state.hold("other")
    assert ledger.claim(changed[1:], "other") == {changed[1]}
    assert ingest() == 1
    lock.release()
    assert ingest() == 2  # named documents are indexed even if they are unchanged
    assert scan_docs(book.build_context()).is_up_to_date


def test_the_first_build_does_not_wait_for_itself(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = book.build_context()
    open_store, opened = context.services.catalog.open, []

    def note(collection_id: str, *options: Any) -> PointStore:  # noqa: ANN401  # as they are
        opened.append(collection_id)
        return open_store(collection_id, *options)

    monkeypatch.setattr(context.services.catalog, "open", note)
    report = book.ingest(IngestionRequest(rebuild=True), context=context)
    assert report.docs_processed == len(PAGES)
    assert len(opened) == 1  # only by the run, which keeps it open


class WatchedEmbedder(HashingEmbedder):
    """An embedder that says when it is called, and fails in a call."""

    def __init__(self, *, fails_at: int = 0) -> None:
        super().__init__()
        self.fails_at = fails_at
        self.called = threading.Semaphore(0)

    def embed_passages(self, texts: Sequence[str], *options: Any) -> Any:  # noqa: ANN401  # as it is
        """Embed the texts, unless this call has to fail."""
        self.called.release()
        if self.calls + 1 == self.fails_at:
            raise EmbeddingServiceError("the service does not answer")
        return super().embed_passages(texts, *options)


@pytest.fixture
def watched(book: Book, monkeypatch: pytest.MonkeyPatch) -> IngestionContext:
    """The context of a book whose documents are groups of their own, with a watched embedder."""
    monkeypatch.setattr(run_module, "_GROUP_CHUNKS", 1)
    return replace_services(book.build_context(), embedder=WatchedEmbedder())


def test_the_next_group_is_embedded_while_the_results_of_a_group_are_recorded(
    watched: IngestionContext,
) -> None:
    embedder = cast("WatchedEmbedder", watched.services.embedder)
    with closing(run_ingestion(watched, IngestionRequest(), "run")) as events:
        next(event for event in events if isinstance(event, StageDone))
        assert all(embedder.called.acquire(timeout=30) for _ in range(2))
        assert embedder.calls == 2  # not more than one group ahead
        list(events)
    assert embedder.calls == len(PAGES)


def test_a_run_that_is_closed_early_leaves_no_thread_and_embeds_no_text_twice(
    book: Book, watched: IngestionContext
) -> None:
    threads = threading.active_count()
    with closing(run_ingestion(watched, IngestionRequest(), "run")) as events:
        next(event for event in events if isinstance(event, StageDone))
    assert threading.active_count() == threads
    embedder = cast("WatchedEmbedder", watched.services.embedder)
    assert embedder.calls == 2
    assert book.ingest(context=watched).failures == []
    assert embedder.calls == len(PAGES)
    assert scan_docs(watched).is_up_to_date


def test_a_service_that_fails_ends_the_run_after_the_results_of_the_group_before(
    watched: IngestionContext,
) -> None:
    embedder = cast("WatchedEmbedder", watched.services.embedder)
    embedder.fails_at = 2
    kinds: list[type] = []
    events = run_ingestion(watched, IngestionRequest(), "run")
    with pytest.raises(EmbeddingServiceError, match=f"1 of {len(PAGES)} documents are indexed"):
        kinds.extend(map(type, events))
    assert kinds == [RunPlanned, *[StageDone] * len(Stage), RunFailed]
