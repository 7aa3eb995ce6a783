"""A run that is given a scan of the docs folder, and the events of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.errors import DocsFolderError
from rag_pipeline.core.models import DocFailure, Stage
from rag_pipeline.ingestion import planning
from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline.ingestion.events import RunEnded, RunFailed, RunPlanned, StageDone
from rag_pipeline.ingestion.planning import scan_docs
from rag_pipeline.ingestion.run import run_ingestion
from rag_pipeline_tests.book import PAGES, Book, make_book

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.ingestion.events import IngestionEvent
    from rag_pipeline.ingestion.planning import Scan


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """Three pages, nothing indexed."""
    return make_book(tmp_path, memory=True)


def run(book: Book, earlier: Scan | None = None) -> list[IngestionEvent]:
    return list(run_ingestion(book.build_context(), IngestionRequest(), "run", earlier))


def test_a_run_does_not_read_the_folder_again_that_its_caller_has_read(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = scan_docs(book.build_context())
    monkeypatch.setattr(planning, "discover_docs", None)
    run(book, scan)
    assert {str(payload["doc_path"]) for payload in book.read_payloads().values()} == set(PAGES)


def test_a_scan_from_before_another_ingestion_deletes_nothing_of_it(book: Book) -> None:
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


def test_an_error_that_ends_a_run_is_its_last_event(tmp_path: Path) -> None:
    book = make_book(tmp_path, {}, memory=True)
    events = run_ingestion(book.build_context(), IngestionRequest(), "run")
    failed = next(events)
    assert isinstance(failed, RunFailed)
    assert isinstance(failed.error, DocsFolderError)
    with pytest.raises(DocsFolderError):
        next(events)
