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
from rag_pipeline.orchestration.dead_runs import end_dead_runs
from rag_pipeline.orchestration.jobs import INGEST_JOB, NIGHTLY_RECONCILIATION
from rag_pipeline.orchestration.sensors import docs_changes
from rag_pipeline_tests.book import PAGES, make_page, make_paragraph
from rag_pipeline_tests.orchestration.test_ingestion_assets import BROKEN, LARGE

if TYPE_CHECKING:
    from rag_pipeline_tests.orchestration.dagster_book import DagsterBook


def tick(dagster_book: DagsterBook) -> dg.SensorResult | dg.SkipReason:
    """Evaluate the sensor once."""
    context = dg.build_sensor_context(
        instance=dagster_book.instance,
        resources={"ingestion": dagster_book.resource},
        definitions=dagster_book.definitions,
    )
    result = docs_changes(context)
    assert isinstance(result, (dg.SensorResult, dg.SkipReason))
    return result


def skip(dagster_book: DagsterBook) -> str:
    """Evaluate the sensor once, check that it requests no run, and return its reason."""
    result = tick(dagster_book)
    assert isinstance(result, dg.SkipReason), result
    return result.skip_message or ""


def request(dagster_book: DagsterBook) -> dg.RunRequest:
    """Evaluate the sensor once, add the partitions it requests, and return its run request."""
    result = tick(dagster_book)
    assert isinstance(result, dg.SensorResult), result
    for change in result.dynamic_partitions_requests or ():
        dagster_book.add_partitions(*change.partition_keys)
    (run_request,) = result.run_requests or ()
    return run_request


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
    assert dagster_book.partitions == set(PAGES)
    assert run_request.run_key is None
    assert carry_out(dagster_book, run_request)
    assert skip(dagster_book) == "3 documents are up to date"


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
    assert skip(dagster_book) == "3 documents are up to date"


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
    assert isinstance(tick(dagster_book), dg.SensorResult)


@pytest.mark.parametrize(
    ("pid", "dead"), [(2**22 + 1, True), (os.getpid(), False)], ids=["dead", "alive"]
)
def test_a_run_whose_process_was_killed_does_not_block_the_sensor(
    dagster_book: DagsterBook, pid: int, *, dead: bool
) -> None:
    instance = dagster_book.instance
    run = instance.create_run_for_job(
        dagster_book.definitions.resolve_job_def(INGEST_JOB.name),
        tags={"rag_pipeline/process": f"{os.uname().nodename}:{pid}"},
        status=dg.DagsterRunStatus.STARTED,
    )
    end_dead_runs(instance)
    after = instance.get_run_by_id(run.run_id)
    assert after is not None
    assert after.is_failure == dead
    assert isinstance(tick(dagster_book), dg.SensorResult) == dead


def test_a_repeated_run_that_starts_is_not_failed_because_of_the_tag_of_the_first(
    dagster_book: DagsterBook,
) -> None:
    instance = dagster_book.instance
    run = instance.create_run_for_job(
        dagster_book.definitions.resolve_job_def(INGEST_JOB.name),
        tags={"rag_pipeline/process": f"{os.uname().nodename}:{2**22 + 1}"},
        status=dg.DagsterRunStatus.STARTING,
    )
    end_dead_runs(instance)
    after = instance.get_run_by_id(run.run_id)
    assert after is not None
    assert after.status is dg.DagsterRunStatus.STARTING


def test_a_run_of_another_machine_is_not_marked_as_failed(dagster_book: DagsterBook) -> None:
    dagster_book.instance.create_run_for_job(
        dagster_book.definitions.resolve_job_def(INGEST_JOB.name),
        tags={"rag_pipeline/process": "elsewhere:4194305"},
        status=dg.DagsterRunStatus.STARTED,
    )
    assert "in progress" in skip(dagster_book)


def test_a_broken_page_is_named_and_waits_longer_after_each_failure(
    dagster_book: DagsterBook,
) -> None:
    dagster_book.book.write("broken.md", BROKEN)
    assert not carry_out(dagster_book, request(dagster_book))
    for wait in (60, 120, 240):
        reason = "3 documents are up to date; 1 failed and will be tried again: "
        assert skip(dagster_book) == reason + "broken.md"
        wait_over(dagster_book, "broken.md", wait - 5)
        assert "broken.md" in skip(dagster_book)
        wait_over(dagster_book, "broken.md", wait)
        run_request = replace_tags(request(dagster_book))
        assert config_of(run_request) == {"doc_ids": ["broken.md"], "delete_ids": []}
        assert not carry_out(dagster_book, run_request)


def replace_tags(run_request: dg.RunRequest) -> dg.RunRequest:
    """Return the request without tags, so that its failed run does not delay the next request."""
    return run_request.with_replaced_attrs(tags={})


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
    assert skip(dagster_book) == "3 documents are up to date"
    assert dagster_book.partitions == set(PAGES)


def test_other_pages_are_indexed_while_a_broken_one_waits(dagster_book: DagsterBook) -> None:
    dagster_book.book.write("broken.md", BROKEN)
    carry_out(dagster_book, request(dagster_book))
    dagster_book.book.edit(LARGE, "## Two", "## Duo")
    assert config_of(request(dagster_book)) == {"doc_ids": [LARGE], "delete_ids": []}


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
    from rag_pipeline_tests.ingestion.records import make_failure  # noqa: PLC0415  # used only here

    failure = make_failure("moved.md", sha256)
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
