"""Tests of the sensor `docs_changes`, which requests runs until all changes are indexed."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from rag_pipeline.core.errors import StoreUnavailableError
from rag_pipeline.core.ids import DocId
from rag_pipeline.core.models import DocFailure
from rag_pipeline.ingestion.planning import scan_docs
from rag_pipeline.orchestration import dead_runs
from rag_pipeline.orchestration.dead_runs import end_dead_runs
from rag_pipeline.orchestration.jobs import INGEST_JOB, NIGHTLY_RECONCILIATION, build_docs_sensor
from rag_pipeline.orchestration.partitions import mark_failed
from rag_pipeline_tests.book import PAGES, make_page, make_paragraph
from rag_pipeline_tests.ingestion.records import make_failure
from rag_pipeline_tests.orchestration.dagster_book import STAGES
from rag_pipeline_tests.orchestration.test_ingestion_assets import BROKEN, LARGE

if TYPE_CHECKING:
    from rag_pipeline_tests.orchestration.dagster_book import DagsterBook

UP_TO_DATE = "3 documents are up to date"


def tick(dagster_book: DagsterBook, cursor: str | None = None) -> dg.SensorResult | dg.SkipReason:
    """Evaluate the sensor once."""
    context = dg.build_sensor_context(
        instance=dagster_book.instance,
        cursor=cursor,
        resources={"ingestion": dagster_book.resource},
        definitions=dagster_book.definitions,
    )
    result = build_docs_sensor(30)(context)
    assert isinstance(result, (dg.SensorResult, dg.SkipReason))
    return result


def skip(dagster_book: DagsterBook) -> str:
    """Evaluate the sensor once, check that it requests no run, and return its reason."""
    result = tick(dagster_book)
    reason = result.skip_reason if isinstance(result, dg.SensorResult) else result
    assert reason is not None, result
    return reason.skip_message or ""


def request(dagster_book: DagsterBook) -> dg.RunRequest:
    """Evaluate the sensor once, and return its only run request."""
    (run_request,) = request_all(dagster_book)
    return run_request


def request_all(dagster_book: DagsterBook) -> list[dg.RunRequest]:
    """Evaluate the sensor once, and return its run requests."""
    result = tick(dagster_book)
    assert isinstance(result, dg.SensorResult), result
    return list(result.run_requests or ())


def config_of(run_request: dg.RunRequest) -> dict[str, list[str]]:
    """Return the config of the ingestion in a run request."""
    return dict(run_request.run_config["ops"]["ingestion"]["config"])


def carry_out(dagster_book: DagsterBook, run_request: dg.RunRequest) -> bool:
    """Run what the sensor requested, and return True if the run succeeded."""
    config, tags = config_of(run_request), run_request.tags
    return dagster_book.run(config=config, tags=tags).success


def wait_over(dagster_book: DagsterBook, doc_id: str, seconds: int) -> None:
    """Set the time of a document's last failure to `seconds` ago."""
    ledger = dagster_book.book.open_ledger(dagster_book.book.catalog.current_id() or "")
    failure = ledger.failures()[DocId(doc_id)]
    at = datetime.now(UTC) - timedelta(seconds=seconds)
    ledger.record_failure(replace(failure, failed_at=at.isoformat()))


def test_all_documents_of_a_new_folder_are_requested_as_one_run(dagster_book: DagsterBook) -> None:
    run_request = request(dagster_book)
    assert config_of(run_request) == {"doc_ids": sorted(PAGES), "delete_ids": []}
    assert run_request.run_key is None
    assert carry_out(dagster_book, run_request)
    assert skip(dagster_book) == UP_TO_DATE


def test_added_changed_moved_and_removed_pages_are_requested_as_one_run(
    dagster_book: DagsterBook,
) -> None:
    carry_out(dagster_book, request(dagster_book))
    book = dagster_book.book
    book.write("new.md", make_page("New", ("A", make_paragraph(90))))
    book.edit(LARGE, "## Two", "## Second")
    book.move("intro.md", "module-2/intro.md")
    (book.docs / "module-1/small page.md").unlink()
    run_request = request(dagster_book)
    assert config_of(run_request) == {
        "doc_ids": [LARGE, "module-2/intro.md", "new.md"],
        "delete_ids": ["intro.md", "module-1/small page.md"],
    }
    assert carry_out(dagster_book, run_request)
    assert dagster_book.partitions == {LARGE, "module-2/intro.md", "new.md"}
    assert skip(dagster_book) == UP_TO_DATE


def test_an_edit_that_is_undone_and_repeated_is_requested_each_time(
    dagster_book: DagsterBook,
) -> None:
    carry_out(dagster_book, request(dagster_book))
    for old, new in (("Two", "Duo"), ("Duo", "Two"), ("Two", "Duo")):
        dagster_book.book.edit(LARGE, f"## {old}", f"## {new}")
        run_request = request(dagster_book)
        assert run_request.run_key is None
        assert config_of(run_request)["doc_ids"] == [LARGE]
        assert carry_out(dagster_book, run_request)


def test_a_file_with_only_a_new_time_needs_no_run_and_is_read_only_once(
    dagster_book: DagsterBook,
) -> None:
    carry_out(dagster_book, request(dagster_book))
    path = dagster_book.book.docs / LARGE
    os.utime(path, ns=(1, 1))
    assert skip(dagster_book).startswith("3 documents")
    path.chmod(0o000)  # the ledger has the new time, so the file is not read again
    try:
        assert skip(dagster_book).startswith("3 documents")
    finally:
        path.chmod(0o600)


def test_nothing_is_requested_while_a_run_is_in_progress(dagster_book: DagsterBook) -> None:
    run = dagster_book.instance.create_run_for_job(
        dagster_book.definitions.resolve_job_def(INGEST_JOB.name)
    )
    assert f"run {run.run_id[:8]} is in progress" in skip(dagster_book)
    dagster_book.instance.report_run_canceled(run)
    assert request_all(dagster_book)


def test_a_large_change_is_divided_into_runs_that_later_ticks_do_not_repeat(
    dagster_book: DagsterBook,
) -> None:
    context = dagster_book.resource.context
    settings = context.settings.model_copy(update={"ingest_run_docs": 2})
    vars(dagster_book.resource)["context"] = replace(context, settings=settings)
    requests = request_all(dagster_book)
    pages = [config_of(it)["doc_ids"] for it in requests]
    assert [len(page) for page in pages] == [2, 1]
    assert sorted(it for page in pages for it in page) == sorted(PAGES)
    for run_request in requests:
        dagster_book.instance.create_run_for_job(
            dagster_book.definitions.resolve_job_def(INGEST_JOB.name),
            run_config=run_request.run_config,
        )
    assert skip(dagster_book) == "2 runs index 3 documents"
    dagster_book.book.write("new.md", PAGES["intro.md"])
    assert config_of(request(dagster_book))["doc_ids"] == ["new.md"]


def test_a_tick_corrects_partitions_that_a_killed_run_left_behind(
    dagster_book: DagsterBook,
) -> None:
    dagster_book.book.write("broken.md", BROKEN)
    carry_out(dagster_book, request(dagster_book))
    instance = dagster_book.instance
    job = dagster_book.definitions.resolve_job_def(INGEST_JOB.name)
    run = instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
    wrong = DocFailure("intro.md", "parsed_docs", "KilledError", "killed")
    mark_failed(instance, run, wrong)
    mark_failed(instance, run, replace(wrong, doc_path="gone.md"))
    instance.report_run_failed(run)
    states = dict.fromkeys(PAGES, "MATERIALIZED") | {"broken.md": "FAILED"}
    assert dagster_book.statuses("qdrant_points") == states | {
        "intro.md": "FAILED",
        "gone.md": "FAILED",
    }
    result = tick(dagster_book)
    assert dagster_book.statuses("qdrant_points") == states
    assert isinstance(result, dg.SensorResult)
    again = tick(dagster_book, result.cursor)
    assert isinstance(again, dg.SensorResult)
    assert again.cursor == result.cursor


@pytest.mark.parametrize(
    ("pid", "dead"), [(2**22 + 1, True), (os.getpid(), False)], ids=["dead", "alive"]
)
@pytest.mark.parametrize("job_name", ["ingest", "__ASSET_JOB"])
def test_a_run_whose_process_was_killed_does_not_block_the_sensor(
    dagster_book: DagsterBook, job_name: str, pid: int, *, dead: bool
) -> None:
    instance = dagster_book.instance
    job = dagster_book.definitions.resolve_implicit_global_asset_job_def()
    assets = None
    if job_name == "ingest":
        job = dagster_book.definitions.resolve_job_def(job_name)
    else:
        assets = frozenset(dg.AssetKey(name) for name in STAGES)
        job = job.get_subset(asset_selection=assets)
    run = instance.create_run_for_job(
        job,
        asset_selection=assets,
        tags={"rag_pipeline/process": f"{os.uname().nodename}:{pid}"},
        status=dg.DagsterRunStatus.STARTED,
    )
    end_dead_runs(instance)
    after = instance.get_run_by_id(run.run_id)
    assert after is not None
    assert after.is_failure == dead
    assert bool(request_all(dagster_book)) == dead


@pytest.mark.parametrize("status", ["STARTING", "STARTED"])
def test_a_repeated_run_that_starts_is_not_failed_because_of_the_tag_of_the_first(
    dagster_book: DagsterBook, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    instance = dagster_book.instance
    job = dagster_book.definitions.resolve_job_def(INGEST_JOB.name)
    tags = {"rag_pipeline/process": f"{os.uname().nodename}:{2**22 + 1}"}
    ended = dg.DagsterRunStatus.SUCCESS
    first = instance.create_run_for_job(job, tags=tags, status=ended).run_id
    repeated = instance.create_run_for_job(
        job,
        tags=tags,
        status=dg.DagsterRunStatus(status),
        root_run_id=first,
        parent_run_id=first,
    ).run_id

    def read_status() -> str:
        end_dead_runs(instance)
        (record,) = instance.get_run_records(dg.RunsFilter(run_ids=[repeated]))
        return record.dagster_run.status.value

    assert read_status() == status
    monkeypatch.setattr(dead_runs, "_LONGEST_BEGINNING_S", -1.0)
    assert read_status() == ("FAILURE" if status == "STARTED" else status)


def test_a_run_of_another_machine_is_not_marked_as_failed(dagster_book: DagsterBook) -> None:
    dagster_book.instance.create_run_for_job(
        dagster_book.definitions.resolve_job_def(INGEST_JOB.name),
        tags={"rag_pipeline/process": "elsewhere:4194305"},
        status=dg.DagsterRunStatus.STARTED,
    )
    assert "in progress" in skip(dagster_book)


def test_a_broken_page_is_named_and_only_other_pages_are_tried_before_it_changes(
    dagster_book: DagsterBook,
) -> None:
    dagster_book.book.write("broken.md", BROKEN)
    assert not carry_out(dagster_book, request(dagster_book))
    wait_over(dagster_book, "broken.md", 100_000)
    assert skip(dagster_book) == f"{UP_TO_DATE}; 1 failed: broken.md"
    assert dagster_book.run(config={"reread": True}).success  # as every night
    assert dagster_book.statuses("qdrant_points")["broken.md"] == "FAILED"
    dagster_book.book.edit(LARGE, "## Two", "## Duo")
    assert config_of(request(dagster_book)) == {"doc_ids": [LARGE], "delete_ids": []}


def test_a_page_that_a_service_failed_waits_longer_after_each_failure(
    dagster_book: DagsterBook,
) -> None:
    carry_out(dagster_book, request(dagster_book))
    dagster_book.book.edit(LARGE, "## Two", "## Duo")
    ledger = dagster_book.book.open_ledger(dagster_book.book.catalog.current_id() or "")
    sha256 = next(
        doc.sha256
        for doc in scan_docs(dagster_book.resource.context).discovery.docs
        if doc.doc_id == LARGE
    )
    failure = replace(make_failure(LARGE, sha256), stage="qdrant_points")
    for attempts, wait in ((1, 60), (2, 120), (3, 240)):
        ledger.record_failure(replace(failure, attempts=attempts))
        wait_over(dagster_book, LARGE, wait - 5)
        assert LARGE in skip(dagster_book)
        wait_over(dagster_book, LARGE, wait)
        assert config_of(request(dagster_book))["doc_ids"] == [LARGE]


def test_a_broken_page_that_changes_or_is_deleted_is_requested_immediately(
    dagster_book: DagsterBook,
) -> None:
    dagster_book.book.write("broken.md", BROKEN)
    carry_out(dagster_book, request(dagster_book))
    path = dagster_book.book.write("broken.md", BROKEN.replace("[", "{"))
    run_request = request(dagster_book)
    assert config_of(run_request)["doc_ids"] == ["broken.md"]
    carry_out(dagster_book, run_request)
    path.unlink()
    run_request = request(dagster_book)
    assert config_of(run_request) == {"doc_ids": [], "delete_ids": ["broken.md"]}
    assert carry_out(dagster_book, run_request)
    assert skip(dagster_book) == UP_TO_DATE
    assert dagster_book.partitions == set(PAGES)


def test_a_request_whose_whole_run_failed_is_repeated_after_a_wait(
    dagster_book: DagsterBook,
) -> None:
    context = dagster_book.resource.context

    def refuse() -> None:
        message = "another ingest holds the lock"
        raise StoreUnavailableError(message)

    object.__setattr__(context.services, "lock", refuse)
    run_request = request(dagster_book)
    assert not carry_out(dagster_book, run_request)
    assert "failed; the next try is at" in skip(dagster_book)
    dagster_book.book.edit(LARGE, "## Two", "## Duo")
    assert LARGE in config_of(request(dagster_book))["doc_ids"]


def test_a_moved_page_is_removed_only_together_with_indexing_its_new_path(
    dagster_book: DagsterBook,
) -> None:
    carry_out(dagster_book, request(dagster_book))
    book = dagster_book.book
    book.move("intro.md", "moved.md")
    ledger = book.open_ledger(book.catalog.current_id() or "")
    sha256 = ledger.entries()[DocId("intro.md")].sha256
    failure = replace(make_failure("moved.md", sha256), stage="qdrant_points")
    ledger.record_failure(replace(failure, failed_at=datetime.now(UTC).isoformat()))
    assert "moved.md" in skip(dagster_book)
    wait_over(dagster_book, "moved.md", 60)
    run_request = request(dagster_book)
    assert config_of(run_request) == {"doc_ids": ["moved.md"], "delete_ids": ["intro.md"]}
    assert carry_out(dagster_book, run_request)


def test_an_unreadable_page_is_named_in_the_skip_reason(dagster_book: DagsterBook) -> None:
    carry_out(dagster_book, request(dagster_book))
    (dagster_book.book.docs / "shut.md").symlink_to("shut.md")
    assert skip(dagster_book).endswith("; 1 cannot be read: shut.md")


def test_a_missing_docs_folder_is_a_skip_reason_and_deletes_nothing(
    dagster_book: DagsterBook,
) -> None:
    carry_out(dagster_book, request(dagster_book))
    dagster_book.book.docs.rename(dagster_book.book.root / "away")
    assert "does not exist" in skip(dagster_book)
    assert len(dagster_book.book.read_points()) == 9


def test_the_nightly_run_finds_an_edit_that_kept_size_and_time(dagster_book: DagsterBook) -> None:
    carry_out(dagster_book, request(dagster_book))
    book = dagster_book.book
    path = book.docs / LARGE
    before = path.stat()
    book.edit(LARGE, "## Two", "## Duo")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert skip(dagster_book).startswith("3 documents")
    context = dg.build_schedule_context(
        instance=dagster_book.instance,
        scheduled_execution_time=datetime.fromtimestamp(time.time(), UTC),
    )
    (run_request,) = NIGHTLY_RECONCILIATION.evaluate_tick(context).run_requests or ()
    assert dagster_book.run(config=config_of(run_request)).success
    headings = {payload["section_heading"] for payload in book.read_payloads().values()}
    assert "Duo" in headings
    assert "Two" not in headings
