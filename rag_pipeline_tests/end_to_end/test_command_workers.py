"""Tests of `rag-pipeline ingest --workers`, which indexes with several processes."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from rag_pipeline_tests.book import make_page, make_paragraph
from rag_pipeline_tests.end_to_end.command import finish
from rag_pipeline_tests.worker_processes import list_workers

if TYPE_CHECKING:
    from rag_pipeline_tests.end_to_end.command import Command

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

BROKEN = "---\ntitle: [broken\n---\n\n## Section\n\nText.\n"


def write_pages(command: Command, count: int) -> None:
    """Add pages to the book of the command."""
    for number in range(count):
        sections = (("One", make_paragraph(number)), ("Two", make_paragraph(number + 50)))
        command.book.write(f"part/page-{number:02}.md", make_page(f"Page {number}", *sections))


def list_chunks(command: Command) -> set[str]:
    """Return the ids of all chunks that the documents have."""
    return {str(chunk["chunk_id"]) for chunk in command.run("chunks", "--json").json["chunks"]}


def audit(command: Command) -> dict[str, Any]:
    """Audit the index and return the record of the audit."""
    return dict(command.run("audit", "--json").json)


def test_two_workers_index_the_whole_book_and_report_it(command: Command) -> None:
    write_pages(command, 12)
    command.book.write("part/page-03.md", BROKEN)
    report = command.run("ingest", "--workers", "2", "--json")
    assert report.code == 1, report
    assert (report.json["docs_processed"], report.json["docs_failed"]) == (14, 1)
    assert [failure["doc_path"] for failure in report.json["failures"]] == ["part/page-03.md"]
    write_pages(command, 12)
    command.book.move("part/page-05.md", "part/moved.md")
    again = command.run("ingest", "--workers", "2", "--json")
    assert again.code == 0, again
    assert "STEP_WORKER" not in report.err + again.err
    assert (again.json["docs_processed"], again.json["docs_deleted"]) == (2, 1)
    assert audit(command)["findings"] == []
    assert command.run("ingest", "--workers", "2", "--json").json["docs_processed"] == 0


def test_workers_that_are_killed_or_stopped_lose_nothing(command: Command) -> None:
    write_pages(command, 30)
    process = command.start("ingest", "--workers", "2")
    deadline = time.monotonic() + 90
    while len(workers := list_workers(process.pid)) < 2 and time.monotonic() < deadline:
        os.sched_yield()
    killed, stopped = workers[:2]
    os.kill(stopped, signal.SIGSTOP)
    os.kill(killed, signal.SIGKILL)
    os.kill(stopped, signal.SIGCONT)
    outcome = finish(process)
    assert outcome.code == 1, outcome
    assert "Run `rag-pipeline ingest` again" in outcome.err
    report = command.run("ingest", "--workers", "2", "--json")
    assert report.code == 0, report
    wanted = list_chunks(command)
    found = audit(command)
    assert (found["findings"], found["point_count"]) == ([], len(wanted))
