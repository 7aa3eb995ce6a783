"""Tests of failing services: only the affected documents fail, and the next run repairs them."""

from __future__ import annotations

import errno
import shutil
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.errors import (
    ConfigurationError,
    EarlierCollectionMissingError,
    EmbeddingDimensionError,
    EmbeddingError,
    EmbeddingServiceError,
    RagPipelineError,
    SpaceMismatchError,
    StoreError,
    StoreTimeoutError,
)
from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline_tests.book import PAGES, Book, assert_same_state, make_book
from rag_pipeline_tests.end_to_end.boundaries import Boundaries, watch
from rag_pipeline_tests.end_to_end.kill_points import (
    EDITED,
    MOVED,
    choose_last_of_each,
    copy_book,
    edit_pages,
)
from rag_pipeline_tests.hashing_embedder import HashingEmbedder

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.core.models import DocFailure
    from rag_pipeline_tests.book import StoredState

FAULTS = {
    "store": StoreTimeoutError("no answer in 10 s"),
    "catalog": StoreError("no answer"),
    "embedder": EmbeddingServiceError("overloaded"),
    "cache": StoreError("the cache's disk is full"),
    "progress": StoreError("no answer"),
    "ledger": OSError(errno.ENOSPC, "No space left on device"),
}


def build_book(root: Path, *, memory: bool = True) -> Book:
    """Build a book that is indexed and then edited; copy an embedded store, which is faster."""
    kept = root.with_name("kept")
    if not memory and kept.exists():
        return copy_book(kept, root)
    shutil.rmtree(root, ignore_errors=True)
    book = make_book(root, memory=memory)
    book.ingest()
    edit_pages(book)
    if not memory:
        copy_book(root, kept)
    return book


def run_with_fault(book: Book, number: int, *, lasting: bool) -> tuple[list[str], bool]:
    """Ingest with a fault at a moment; return the moments, and True if the fault ended the run."""

    def fail(service: str) -> None:
        raise FAULTS[service]

    boundaries = Boundaries(fail, number, lasting=lasting)
    try:
        report = book.ingest(context=watch(book.build_context(), boundaries))
    except (RagPipelineError, OSError):
        return boundaries.names, True
    assert report.docs_failed == len(report.failures)
    return boundaries.names, False


def select_document(state: StoredState, doc_id: str) -> StoredState:
    """Return the points of one document."""
    return {key: point for key, point in state.items() if point[0]["doc_path"] == doc_id}


def payloads(state: StoredState) -> dict[int, object]:
    """Return the payloads by point id."""
    return {key: payload for key, (payload, _) in state.items()}


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("memory", "lasting"),
    [
        pytest.param(True, False, id="memory_once"),
        pytest.param(True, True, id="memory_from_then_on"),
        pytest.param(False, False, id="edge_once", marks=pytest.mark.slow),
        pytest.param(False, True, id="edge_from_then_on", marks=pytest.mark.nightly),
    ],
)
def test_the_next_run_repairs_a_fault_at_any_moment(
    tmp_path: Path, *, memory: bool, lasting: bool
) -> None:
    book = build_book(tmp_path / "book", memory=memory)
    before = book.read_state()
    clean = book.build_clean(tmp_path / "clean").read_state()
    moments, _ = run_with_fault(book, -1, lasting=False)
    assert len(moments) > 25
    seen = {name.split()[1].partition(".")[0] for name in moments}
    assert seen == FAULTS.keys()  # no service may be forgotten
    for number in range(len(moments)) if memory else choose_last_of_each(moments):
        name = moments[number]
        book = build_book(tmp_path / "book", memory=memory)
        _, ended = run_with_fault(book, number, lasting=lasting)
        found = payloads(book.read_state())
        for new_id, old_id in ((EDITED, EDITED), (MOVED[1], MOVED[0])):
            old = payloads(select_document(before, old_id))
            new = payloads(select_document(clean, new_id))
            is_complete = [
                all(found.get(key) == payload for key, payload in wanted.items())
                for wanted in (old, new)
            ]
            assert any(is_complete) or name.startswith("during"), name
        book.embedder = HashingEmbedder()
        report = book.ingest()
        assert report.failures == [], name
        assert_same_state(book.read_state(), clean)
        assert book.ingest().docs_unchanged == 4, name
        outcome = "ended the run" if ended else "failed only documents"
        print(f"{number:3} {name}: {outcome}, repaired")  # noqa: T201  # a table, shown with -s


def test_the_failure_of_one_document_does_not_affect_the_others(tmp_path: Path) -> None:
    book = build_book(tmp_path / "book")
    moments, _ = run_with_fault(book, -1, lasting=False)
    number = next(n for n, name in enumerate(moments) if name == f"after ledger.record {EDITED}")
    book = build_book(tmp_path / "book")

    def fail(_: str) -> None:
        raise FAULTS["ledger"]

    context = watch(book.build_context(), Boundaries(fail, number))
    report = book.ingest(context=context)
    (failure,) = report.failures
    assert (failure.doc_path, failure.stage, failure.error) == (EDITED, "qdrant_points", "OSError")
    assert report.docs_processed == 2
    ledger = book.open_ledger(report.collection_id)
    assert ledger.failures()[EDITED].attempts == 1


class FaultyEmbedder(HashingEmbedder):
    """An embedder that raises an error if a text contains a word; without a word, always."""

    def __init__(self, error: Exception, word: str = "") -> None:
        super().__init__()
        self.error = error
        self.word = word

    def embed_passages(self, texts, windows=()):  # noqa: ANN001, ANN201  # the types of the base class
        if any(self.word in text for text in texts):
            self.calls += 1
            raise self.error
        return super().embed_passages(texts, windows)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (EmbeddingError("the input is not valid"), "the input is not valid"),
        (
            EmbeddingDimensionError("m", "2 vectors", "1 vector"),
            "embedding model m ",
        ),
        (
            RecursionError("too deep"),
            "intro.md: unexpected recursion error in embeddings: too deep",
        ),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_text_that_cannot_be_embedded_fails_only_its_document(
    tmp_path: Path, error: Exception, message: str
) -> None:
    book = make_book(tmp_path, memory=True)
    book.edit("intro.md", "## Why", "## Unspeakable")
    book.embedder = FaultyEmbedder(error, "Unspeakable")
    report = book.ingest()
    (failure,) = report.failures
    assert (failure.doc_path, failure.stage) == ("intro.md", "embeddings")
    assert failure.error == type(error).__name__
    assert failure.message.startswith(message)
    assert report.docs_processed == 2


def test_a_service_that_is_down_is_not_called_for_every_document(tmp_path: Path) -> None:
    pages = {f"page-{number}.md": text for number, text in enumerate([*PAGES.values()] * 4)}
    book = make_book(tmp_path, pages, memory=True)
    book.embedder = FaultyEmbedder(EmbeddingServiceError("down"))
    with pytest.raises(EmbeddingServiceError) as raised:
        book.ingest()
    assert str(raised.value) == (
        "down. 0 of 12 documents are indexed; the next ingest continues with the others"
    )
    assert book.embedder.calls == 1
    book.embedder = HashingEmbedder()
    assert book.ingest().docs_processed == 12


def test_documents_before_an_outage_stay_indexed_and_the_next_run_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # one document in a group
    monkeypatch.setattr("rag_pipeline.ingestion.run._GROUP_CHUNKS", 1)
    book = make_book(tmp_path, memory=True)
    book.edit("module-1/small page.md", "## Alone", "## Unspeakable")
    book.embedder = FaultyEmbedder(EmbeddingServiceError("down"), "Unspeakable")
    with pytest.raises(EmbeddingServiceError, match="2 of 3 documents are indexed"):
        book.ingest()
    book.embedder = HashingEmbedder()
    report = book.ingest()
    assert (report.docs_processed, report.docs_unchanged) == (1, 2)


@pytest.mark.parametrize("memory", [False, True], ids=["embedded", "server"])
def test_an_empty_collection_is_replaced_when_the_model_changes(
    tmp_path: Path, *, memory: bool
) -> None:
    book = make_book(tmp_path, memory=memory)
    book.embedder = FaultyEmbedder(EmbeddingServiceError("down"))
    with pytest.raises(EmbeddingServiceError):
        book.ingest()
    empty = book.build_context().services.catalog.current_id()
    book.embedder = HashingEmbedder(name="another")
    report = book.ingest()
    assert (report.docs_processed, len(book.read_points())) == (3, 9)
    assert report.collection_id != empty
    with pytest.raises(EarlierCollectionMissingError):
        book.build_context().services.catalog.roll_back()
    book.embedder = HashingEmbedder()
    with pytest.raises(SpaceMismatchError):
        book.ingest()


def test_a_wrong_api_key_aborts_the_run_with_one_error(tmp_path: Path) -> None:
    book = make_book(tmp_path, memory=True)
    book.embedder = FaultyEmbedder(ConfigurationError("OPENAI_API_KEY", "was refused", "Set it"))
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        book.ingest()
    assert book.read_points() == []


def test_failed_attempts_are_counted_until_the_document_changes(tmp_path: Path) -> None:
    book = make_book(tmp_path, memory=True)
    book.ingest()
    good = (book.docs / "intro.md").read_text("utf-8")

    def ingest_broken(text: str) -> tuple[int, list[DocFailure]]:
        book.write("intro.md", text)
        report = book.ingest()
        failures = book.open_ledger(report.collection_id).failures()
        return failures["intro.md"].attempts, report.failures

    attempts, (failure,) = ingest_broken("---\ntitle: [\n---\n")
    assert (attempts, failure.stage, failure.error) == (1, "parsed_docs", "FrontMatterError")
    assert ingest_broken("---\ntitle: [\n---\n")[0] == 2
    assert ingest_broken("---\ntitle: {\n---\n")[0] == 1
    assert len(select_document(book.read_state(), "intro.md")) == 2  # the indexed points stay
    book.write("intro.md", good)
    report = book.ingest()
    assert (report.failures, report.texts_embedded, report.docs_processed) == ([], 0, 1)
    assert book.open_ledger(report.collection_id).failures() == {}


def test_the_failure_of_a_page_that_is_deleted_is_removed_from_the_ledger(tmp_path: Path) -> None:
    book = make_book(tmp_path, memory=True)
    broken = book.write("broken.md", "---\ntitle: [\n---\n")
    report = book.ingest()
    assert [failure.doc_path for failure in report.failures] == ["broken.md"]
    broken.unlink()
    report = book.ingest()
    assert (report.failures, report.docs_deleted, report.chunks_deleted) == ([], 1, 0)
    assert book.open_ledger(report.collection_id).failures() == {}
    assert book.ingest().docs_deleted == 0


def test_a_request_for_a_missing_page_fails_with_its_name(tmp_path: Path) -> None:
    book = make_book(tmp_path, memory=True)
    request = IngestionRequest(doc_ids=("nowhere.md", "intro.md"))
    report = book.ingest(request)
    (failure,) = report.failures
    assert (failure.doc_path, failure.error) == ("nowhere.md", "DocumentMissing")
    assert report.docs_processed == 1
    assert book.open_ledger(report.collection_id).failures() == {}
