"""Tests of the asset check that compares the store with the ledger."""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from rag_pipeline.adapters.stores.edge_catalog import EdgeCatalog
from rag_pipeline.core.ids import PointId
from rag_pipeline.core.protocols import PointFilter
from rag_pipeline.core.vectors import Point, SparseVector
from rag_pipeline.definitions import build_defs
from rag_pipeline.orchestration.checks import STORE_CHECK
from rag_pipeline.orchestration.jobs import AUDIT_JOB, INGEST_JOB, NIGHTLY_AUDIT
from rag_pipeline.orchestration.partitions import BOOK_INDEX
from rag_pipeline.orchestration.resources import Ingestion
from rag_pipeline_tests.book import Book, make_book
from rag_pipeline_tests.orchestration.dagster_book import QUIET

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline_tests.orchestration.dagster_book import DagsterBook

LARGE = "module-1/large.md"
KEY = dg.AssetCheckKey(dg.AssetKey(BOOK_INDEX), STORE_CHECK)


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """Create a book with three pages and the embedded store, instead of the store in memory."""
    book = make_book(tmp_path)
    book.catalog = EdgeCatalog(book.state / "store", "book", 0.2, book.forget)
    return book


def run_audit(dagster_book: DagsterBook) -> dg.ExecuteInProcessResult:
    """Run the audit job, which contains only this check; return a failed run too."""
    job = dagster_book.definitions.resolve_job_def(AUDIT_JOB.name)
    return job.execute_in_process(
        run_config=QUIET, instance=dagster_book.instance, raise_on_error=False
    )


def evaluate(dagster_book: DagsterBook) -> dg.AssetCheckEvaluation:
    """Run the audit job, check that it succeeds, and return the only check result."""
    result = run_audit(dagster_book)
    assert result.success
    (evaluation,) = result.get_asset_check_evaluations()
    assert (evaluation.asset_check_key, evaluation.partition) == (KEY, None)
    return evaluation


def read_failure(dagster_book: DagsterBook) -> str:
    """Run the audit job, check that it fails without a check result, and return the reason."""
    result = run_audit(dagster_book)
    assert not result.success
    assert not result.get_asset_check_evaluations()
    data = next(event for event in result.all_events if event.is_step_failure).step_failure_data
    assert data.user_failure_data is not None  # an explained failure, not a traceback
    return str(data.user_failure_data.description)


def read_table(evaluation: dg.AssetCheckEvaluation) -> list[tuple[str, str]]:
    """Return kind and document of each finding in the result's table."""
    table = evaluation.metadata["findings"]
    assert isinstance(table, dg.TableMetadataValue)
    assert all("rag-pipeline" in str(record.data["remedy"]) for record in table.records)
    return [(str(record.data["kind"]), str(record.data["doc_path"])) for record in table.records]


def count(evaluation: dg.AssetCheckEvaluation, name: str) -> object:
    """Return the number `name` from the metadata of a check result."""
    return evaluation.metadata[name].value


def damage(book: Book) -> None:
    """Delete a point, alter a payload, and add a point of a document that does not exist."""
    with closing(book.build_context().services.catalog.open_current()) as store:
        first, second, third, *_ = store.scroll(
            PointFilter.any_of(doc_path=(LARGE,)), with_vectors=True
        )
        assert third.vectors is not None
        store.delete([first.point_id])
        store.set_payloads({second.point_id: second.payload | {"module": "altered"}})
        payload = third.payload | {"doc_path": "ghost.md"}
        store.upsert([Point(PointId(7), third.vectors, SparseVector((1,), (1.0,)), payload)])


def test_an_undamaged_collection_passes(dagster_book: DagsterBook) -> None:
    dagster_book.run()
    evaluation = evaluate(dagster_book)
    assert evaluation.passed
    assert (count(evaluation, "doc_count"), count(evaluation, "point_count")) == (3, 9)
    assert count(evaluation, "finding_count") == 0
    assert "findings" not in evaluation.metadata


def test_a_damaged_collection_fails_with_counts_and_remedies(dagster_book: DagsterBook) -> None:
    dagster_book.run()
    damage(dagster_book.book)
    evaluation = evaluate(dagster_book)
    assert not evaluation.passed
    assert evaluation.severity is dg.AssetCheckSeverity.ERROR
    assert count(evaluation, "finding_count") == 3
    kinds = {kind: count(evaluation, kind) for kind in ("missing", "wrong_payload", "stray")}
    assert kinds == {"missing": 1, "wrong_payload": 1, "stray": 1}
    assert "1 missing, 1 stray, 1 wrong_payload" in str(evaluation.description)
    expected = [("missing", LARGE), ("stray", "ghost.md"), ("wrong_payload", LARGE)]
    assert sorted(read_table(evaluation)) == expected


def test_only_the_first_twenty_findings_are_listed(dagster_book: DagsterBook) -> None:
    dagster_book.book.write("many.md", "\n\n".join(f"## {n}\n\nText {n}." for n in range(40)))
    dagster_book.run()
    with closing(dagster_book.book.build_context().services.catalog.open_current()) as store:
        doomed = store.scroll(PointFilter.any_of(doc_path=("many.md",)))
        store.delete([point.point_id for point in doomed])
    evaluation = evaluate(dagster_book)
    assert count(evaluation, "missing") == len(doomed) == 40
    assert len(read_table(evaluation)) == 20


def test_the_check_passes_if_nothing_was_ever_ingested(dagster_book: DagsterBook) -> None:
    evaluation = evaluate(dagster_book)
    assert evaluation.passed
    assert "Nothing has been ingested yet" in str(evaluation.description)
    assert not (dagster_book.book.state / "store").exists()


def test_the_check_fails_if_the_collection_was_deleted(dagster_book: DagsterBook) -> None:
    dagster_book.run()
    shutil.rmtree(dagster_book.book.state / "store")
    evaluation = evaluate(dagster_book)
    assert not evaluation.passed
    assert "does not exist" in str(evaluation.description)


def test_documents_indexed_with_other_settings_are_findings_with_a_remedy(
    dagster_book: DagsterBook,
) -> None:
    dagster_book.run()
    book = dagster_book.book
    book.limits = replace(book.limits, max_tokens=90)
    definitions = build_defs({"ingestion": Ingestion(build=book.build_context)})
    evaluation = evaluate(replace(dagster_book, definitions=definitions))
    assert count(evaluation, "wrong_model") == 3
    table = evaluation.metadata["findings"]
    assert isinstance(table, dg.TableMetadataValue)
    assert "--rebuild" in str(table.records[0].data["remedy"])


def test_a_locked_store_fails_the_run_without_a_check_result(dagster_book: DagsterBook) -> None:
    dagster_book.run()
    with closing(dagster_book.book.build_context().services.catalog.open_current()):
        assert "STORE_LOCK_TIMEOUT_S" in read_failure(dagster_book)
    assert evaluate(dagster_book).passed


def test_findings_cannot_be_confirmed_while_an_ingestion_holds_the_lock(
    dagster_book: DagsterBook,
) -> None:
    dagster_book.run()
    locks = dagster_book.book.open_state().locks
    with locks.hold("book", 0.0):
        assert evaluate(dagster_book).passed  # without findings the lock is not needed
    damage(dagster_book.book)
    with locks.hold("book", 0.0):
        assert "INGEST_LOCK_TIMEOUT_S" in read_failure(dagster_book)
    assert not evaluate(dagster_book).passed


def test_an_ingestion_does_not_run_the_check(dagster_book: DagsterBook) -> None:
    job = dagster_book.definitions.resolve_job_def(INGEST_JOB.name)
    assert KEY not in job.asset_layer.asset_graph.asset_check_keys
    result = dagster_book.run()
    assert [
        one for one in result.get_asset_check_evaluations() if one.check_name == STORE_CHECK
    ] == []


def test_the_ui_can_run_the_check_alone_but_a_document_run_skips_it(
    dagster_book: DagsterBook,
) -> None:
    dagster_book.run()
    damage(dagster_book.book)
    job = dagster_book.definitions.resolve_implicit_global_asset_job_def()

    def run(assets: set[dg.AssetKey], partition: str | None) -> list[bool]:
        subset = job.get_subset(asset_selection=assets, asset_check_selection={KEY})
        result = subset.execute_in_process(
            run_config=QUIET, instance=dagster_book.instance, partition_key=partition
        )
        found = result.get_asset_check_evaluations()
        return [one.passed for one in found if one.asset_check_key == KEY]

    assert run(set(), None) == [False]
    assert run({KEY.asset_key}, None) == []
    summary = dagster_book.instance.event_log_storage.get_asset_check_summary_records([KEY])[KEY]
    assert summary.last_completed_check_execution_record is not None
    evaluation = summary.last_completed_check_execution_record.evaluation
    assert evaluation is not None
    assert not evaluation.passed  # the previous result stays


def test_an_audit_is_requested_every_night(dagster_book: DagsterBook) -> None:
    context = dg.build_schedule_context(
        instance=dagster_book.instance, scheduled_execution_time=datetime(2026, 1, 1, 3, tzinfo=UTC)
    )
    assert len(NIGHTLY_AUDIT.evaluate_tick(context).run_requests or ()) == 1
    assert NIGHTLY_AUDIT.job_name == AUDIT_JOB.name
