"""Tests of an ingestion by several workers: the plan in buckets, and the workers' part of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.buckets import bucket_of
from rag_pipeline.core.errors import PlanOutdatedError, StoreLockedError
from rag_pipeline.core.ids import DocId
from rag_pipeline.core.models import DocFailure
from rag_pipeline.ingestion.events import DocDeleted, StageDone
from rag_pipeline.ingestion.parallel.planning import divide_work, plan_buckets, scan_collection
from rag_pipeline.ingestion.parallel.working import index_buckets
from rag_pipeline.ingestion.planning import scan_docs
from rag_pipeline_tests.book import assert_same_state, make_book, make_page, make_paragraph

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.ingestion.events import IngestionEvent
    from rag_pipeline.ingestion.parallel.planning import BucketWork
    from rag_pipeline_tests.book import Book

PAGES = {
    f"part-{number % 3}/page-{number:02}.md": make_page(
        f"Page {number}", ("One", make_paragraph(number)), ("Two", make_paragraph(number + 40))
    )
    for number in range(12)
}
BROKEN = "---\ntitle: [broken\n---\n\n## Section\n\nText.\n"


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """Create a book with 12 pages and a store in memory. Nothing is indexed yet."""
    return make_book(tmp_path, PAGES, memory=True)


def plan(book: Book) -> tuple[BucketWork, ...]:
    context = book.build_context()
    return plan_buckets(context, scan_collection(context))


def work_on(book: Book, works: tuple[BucketWork, ...]) -> list[IngestionEvent]:
    """Carry out the works one after the other, each with a context of its own."""
    return [event for work in works for event in index_buckets(book.build_context(), work, "run")]


def test_workers_that_index_all_buckets_leave_what_one_ingestion_leaves(book: Book) -> None:
    works = plan(book)
    assert sorted(bucket for work in works for bucket in work.buckets) == sorted(
        {bucket_of(doc_id) for doc_id in PAGES}
    )
    work_on(book, works)
    assert_same_state(book.read_state(), book.build_clean(book.root / "clean").read_state())
    assert plan(book) == ()
    assert book.ingest().docs_processed == 0


def test_a_worker_indexes_only_documents_of_its_buckets(book: Book) -> None:
    first, *_ = plan(book)
    events = work_on(book, (first,))
    done = {event.doc_id for event in events if isinstance(event, StageDone)}
    assert done == {doc_id for doc_id in PAGES if bucket_of(doc_id) in first.buckets}
    assert len(done) == first.doc_count


def test_shares_have_all_buckets_and_about_the_same_number_of_documents(book: Book) -> None:
    context = book.build_context()
    scan = scan_collection(context)
    works = plan_buckets(context, scan)
    shares = divide_work(context, scan, works, 3)
    assert sorted(bucket for share in shares for bucket in share.buckets) == sorted(
        bucket for work in works for bucket in work.buckets
    )
    assert sum(share.doc_count for share in shares) == len(PAGES)
    assert max(share.doc_count for share in shares) <= 5
    assert len(divide_work(context, scan, works[:1], 3)) == 1
    work_on(book, shares)
    assert plan(book) == ()


def test_each_worker_gets_the_same_number_of_shares(book: Book) -> None:
    context = book.build_context()
    settings = context.settings.model_copy(update={"ingest_run_docs": 5})
    context = replace(context, settings=settings)
    scan = scan_collection(context)
    shares = divide_work(context, scan, plan_buckets(context, scan), 2)
    assert [share.doc_count for share in shares] == [3, 3, 3, 3]


def test_a_failed_document_stands_in_the_ledger_and_does_not_stop_the_others(book: Book) -> None:
    book.write("part-0/page-00.md", BROKEN)
    failures = [event for event in work_on(book, plan(book)) if isinstance(event, DocFailure)]
    assert [failure.doc_path for failure in failures] == ["part-0/page-00.md"]
    scan = scan_docs(book.build_context())
    assert set(scan.failures) == {"part-0/page-00.md"}
    assert len(scan.entries) == len(PAGES) - 1


def test_a_worker_with_another_docs_folder_refuses_the_plan(book: Book) -> None:
    works = plan(book)
    book.edit("part-0/page-00.md", "About Page 0", "About zero")
    other = next(work for work in works if bucket_of("part-0/page-00.md") in work.buckets)
    with pytest.raises(PlanOutdatedError, match="has other documents than the plan") as caught:
        work_on(book, (other,))
    assert "same checkout" in str(caught.value)
    work_on(book, tuple(work for work in works if work != other))
    assert len(scan_docs(book.build_context()).entries) == len(PAGES) - other.doc_count


def test_a_worker_without_a_file_deletes_nothing(book: Book) -> None:
    book.ingest()
    (book.docs / "part-1/page-01.md").unlink()
    (other,) = plan(book)
    book.write("part-1/page-01.md", PAGES["part-1/page-01.md"])
    with pytest.raises(PlanOutdatedError):
        work_on(book, (other,))
    book.edit("part-0/page-00.md", "About Page 0", "About zero")
    (wanted,) = plan(book)
    (book.docs / "part-2/page-02.md").unlink()  # in another bucket than the edited page
    work_on(book, (wanted,))
    assert len(scan_docs(book.build_context()).entries) == len(PAGES)


def test_a_document_that_moved_is_found_at_all_times(book: Book) -> None:
    book.ingest()
    book.move("part-1/page-01.md", "part-1/moved.md")
    first = plan(book)
    assert [work.delete_ids for work in first if work.delete_ids] == []
    work_on(book, first)
    second = plan(book)
    assert [work.delete_ids for work in second] == [("part-1/page-01.md",)]
    deleted = [event for event in work_on(book, second) if isinstance(event, DocDeleted)]
    assert [event.doc_id for event in deleted] == [DocId("part-1/page-01.md")]
    assert plan(book) == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"collection_id": "other"}, "the plan is for other"),
        ({"bucket_count": 16}, "the plan has 16 buckets"),
        ({"fingerprint": "f"}, "the same settings"),
    ],
)
def test_a_worker_with_other_settings_or_another_collection_refuses_the_plan(
    book: Book, change: dict[str, object], message: str
) -> None:
    first, *_ = plan(book)
    with pytest.raises(PlanOutdatedError, match=message):
        work_on(book, (replace(first, **change),))  # type: ignore[arg-type]  # checked at run time


def test_workers_exclude_an_ingestion_of_the_book_and_workers_of_their_bucket(book: Book) -> None:
    services = book.build_context().services
    with services.lock_buckets([1, 2]):
        with services.lock_buckets([3]), pytest.raises(StoreLockedError), services.lock(0.0):
            pass
        with pytest.raises(StoreLockedError), services.lock_buckets([2]):
            pass
    with services.lock(0.0), pytest.raises(StoreLockedError), services.lock_buckets([1]):
        pass
