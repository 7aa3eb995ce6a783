"""Tests of the assets with one partition per bucket."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from rag_pipeline.core.buckets import bucket_of
from rag_pipeline.core.models import Stage
from rag_pipeline.ingestion.parallel.planning import plan_buckets, scan_collection
from rag_pipeline.ingestion.planning import scan_docs
from rag_pipeline.orchestration import sensors
from rag_pipeline.orchestration.bucket_requests import BUCKET_TAG, PLANNED_DOCS_TAG
from rag_pipeline.orchestration.buckets import bucket_asset_key, make_config
from rag_pipeline.orchestration.jobs import BUCKETS_JOB
from rag_pipeline.orchestration.resources import IngestionResource
from rag_pipeline.orchestration.sensors import docs_changes
from rag_pipeline_tests.book import PAGES
from rag_pipeline_tests.orchestration.dagster_book import QUIET
from rag_pipeline_tests.orchestration.test_ingestion_assets import BROKEN

if TYPE_CHECKING:
    from rag_pipeline.ingestion.context import IngestionContext
    from rag_pipeline.ingestion.planning import Scan
    from rag_pipeline_tests.orchestration.dagster_book import DagsterBook


def run_bucket(
    dagster_book: DagsterBook, bucket: int, config: dict[str, object] | None = None
) -> dg.ExecuteInProcessResult:
    """Run the job of one bucket, with a plan in the config or without."""
    ops = {"ops": {"bucket_ingestion": {"config": config}}} if config else {}
    return dagster_book.definitions.resolve_job_def(BUCKETS_JOB.name).execute_in_process(
        run_config=QUIET | ops,
        instance=dagster_book.instance,
        partition_key=f"{bucket:03}",
        raise_on_error=False,
    )


def read_materializations(
    dagster_book: DagsterBook, stage: Stage
) -> dict[str, dg.AssetMaterialization]:
    records = dagster_book.instance.fetch_materializations(
        bucket_asset_key(stage), limit=50
    ).records
    found = [record.asset_materialization for record in records]
    return {str(one.partition): one for one in found if one is not None}


def test_each_bucket_has_one_materialization_per_stage_with_its_totals(
    dagster_book: DagsterBook,
) -> None:
    context = dagster_book.resource.context
    works = plan_buckets(context, scan_collection(context))
    for work in works:
        assert run_bucket(dagster_book, work.buckets[0], make_config(work)).success
    for stage in Stage:
        found = read_materializations(dagster_book, stage)
        assert set(found) == {f"{bucket_of(doc_id):03}" for doc_id in PAGES}
        counts = [found[key].metadata["doc_count"].value for key in found]
        assert sum(int(str(count)) for count in counts) == len(PAGES)
    assert plan_buckets(context, scan_docs(context)) == ()


def test_a_failed_document_does_not_fail_the_run_of_its_bucket(dagster_book: DagsterBook) -> None:
    dagster_book.book.write("intro.md", BROKEN)
    result = run_bucket(dagster_book, bucket_of("intro.md"))
    assert result.success
    points = read_materializations(dagster_book, Stage.POINTS)[f"{bucket_of('intro.md'):03}"]
    assert points.metadata["failed_docs"].value == "intro.md"
    run = dagster_book.instance.get_run_by_id(result.run_id)
    assert run is not None
    assert run.tags["docs_failed"] == "1"


def write_bucket(dagster_book: DagsterBook, count: int, text: str) -> int:
    """Write documents that all belong to one bucket, in place of the book's, and return it."""
    bucket = bucket_of("intro.md")
    names = (f"page-{number}.md" for number in itertools.count())
    chosen = (name for name in names if bucket_of(name) == bucket)
    dagster_book.book.write("intro.md", text)
    for name in itertools.islice(chosen, count - 1):
        dagster_book.book.write(name, text)
    return bucket


def count_rows(dagster_book: DagsterBook, run_id: str) -> Counter[str]:
    """Return the number of rows of each type that a run has in Dagster's event log."""
    return Counter(
        entry.dagster_event.event_type_value if entry.dagster_event else "log message"
        for entry in dagster_book.instance.all_logs(run_id)
    )


@pytest.mark.parametrize("text", [PAGES["intro.md"], BROKEN], ids=["indexed", "failed"])
def test_a_bucket_has_the_same_events_whatever_its_number_of_documents(
    dagster_book: DagsterBook, text: str
) -> None:
    rows, messages = [], list[str]()
    for count in (21, 30):
        bucket = write_bucket(dagster_book, count, text)
        result = run_bucket(dagster_book, bucket)
        assert result.success
        rows.append(count_rows(dagster_book, result.run_id))
        logged = dagster_book.instance.all_logs(result.run_id)
        messages += [entry.user_message for entry in logged if entry.dagster_event is None]
    assert rows[0]["ASSET_MATERIALIZATION"] == rows[0]["ASSET_MATERIALIZATION_PLANNED"] == 5
    assert rows[0] == rows[1]
    assert rows[0].total() == 19 + (text == BROKEN)
    if text == BROKEN:
        assert [message.splitlines()[0] for message in messages] == [
            f"bucket {bucket:03}: {count} failed" for count in (21, 30)
        ]
        assert [len(message.splitlines()) for message in messages] == [22, 22]
        assert messages[1].endswith("and 10 more, which the ledger lists")


def test_a_run_whose_plan_is_outdated_fails_and_says_why(dagster_book: DagsterBook) -> None:
    context = dagster_book.resource.context
    works = plan_buckets(context, scan_collection(context))
    work = next(work for work in works if bucket_of("intro.md") in work.buckets)
    dagster_book.book.edit("intro.md", "## Start", "## Begin")
    result = run_bucket(dagster_book, work.buckets[0], make_config(work))
    assert not result.success
    (failure,) = [event for event in result.all_events if event.is_step_failure]
    assert "same checkout" in str(failure.step_failure_data.error)


def tick(dagster_book: DagsterBook) -> dg.SensorResult | dg.SkipReason:
    """Evaluate the sensor once, for a book that is too large for one partition per document."""
    settings = dagster_book.resource.context.settings.model_copy(update={"doc_partitions_limit": 2})
    context = replace(dagster_book.resource.context, settings=settings)
    sensor_context = dg.build_sensor_context(
        instance=dagster_book.instance,
        resources={"ingestion": IngestionResource(lambda: context)},
        definitions=dagster_book.definitions,
    )
    result = docs_changes(sensor_context)
    assert isinstance(result, (dg.SensorResult, dg.SkipReason))
    return result


def test_the_sensor_requests_one_run_per_bucket_of_a_large_book(dagster_book: DagsterBook) -> None:
    result = tick(dagster_book)
    assert isinstance(result, dg.SensorResult), result
    requests = list(result.run_requests or ())
    keys = sorted({f"{bucket_of(doc_id):03}" for doc_id in PAGES})
    assert [request.partition_key for request in requests] == keys
    assert {request.job_name for request in requests} == {BUCKETS_JOB.name}
    assert [request.tags[BUCKET_TAG] for request in requests] == keys
    assert sum(int(request.tags[PLANNED_DOCS_TAG]) for request in requests) == len(PAGES)
    for request in requests:
        config = request.run_config["ops"]["bucket_ingestion"]["config"]
        assert run_bucket(dagster_book, int(request.partition_key or ""), config).success
    assert isinstance(tick(dagster_book), dg.SkipReason)


def test_the_sensor_requests_no_second_run_for_a_bucket_in_progress(
    dagster_book: DagsterBook,
) -> None:
    job = dagster_book.definitions.resolve_job_def(BUCKETS_JOB.name)
    bucket = f"{bucket_of('intro.md'):03}"
    dagster_book.instance.create_run_for_job(
        job, status=dg.DagsterRunStatus.STARTED, tags={"dagster/partition": bucket}
    )
    result = tick(dagster_book)
    assert isinstance(result, dg.SensorResult), result
    assert bucket not in {request.partition_key for request in result.run_requests or ()}


def test_the_sensor_requests_no_second_run_for_a_bucket_whose_run_ends_during_the_scan(
    dagster_book: DagsterBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = dagster_book.definitions.resolve_job_def(BUCKETS_JOB.name)
    bucket = f"{bucket_of('intro.md'):03}"
    run = dagster_book.instance.create_run_for_job(job, tags={"dagster/partition": bucket})

    def scan_slowly(context: IngestionContext) -> Scan:
        scan = scan_docs(context)
        dagster_book.instance.report_run_canceled(run)
        return scan

    monkeypatch.setattr(sensors, "scan_docs", scan_slowly)
    result = tick(dagster_book)
    assert isinstance(result, dg.SensorResult), result
    assert bucket not in {request.partition_key for request in result.run_requests or ()}


def test_a_failed_run_of_a_bucket_is_not_requested_again_at_once(dagster_book: DagsterBook) -> None:
    result = tick(dagster_book)
    assert isinstance(result, dg.SensorResult), result
    job = dagster_book.definitions.resolve_job_def(BUCKETS_JOB.name)
    for request in result.run_requests or ():
        run = dagster_book.instance.create_run_for_job(job, tags=dict(request.tags))
        dagster_book.instance.report_run_failed(run)
    again = tick(dagster_book)
    assert isinstance(again, dg.SkipReason), again
    assert "3 buckets wait after a failure" in str(again.skip_message)


def test_the_sensor_of_a_small_book_waits_for_runs_of_its_buckets(
    dagster_book: DagsterBook,
) -> None:
    job = dagster_book.definitions.resolve_job_def(BUCKETS_JOB.name)
    run = dagster_book.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
    context = dg.build_sensor_context(
        instance=dagster_book.instance,
        resources={"ingestion": dagster_book.resource},
        definitions=dagster_book.definitions,
    )
    result = docs_changes(context)
    assert isinstance(result, dg.SkipReason), result
    assert run.run_id[:8] in str(result.skip_message)
