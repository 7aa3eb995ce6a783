"""After any sequence of changes, runs and kills, the partitions tell the state of the index."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from rag_pipeline.core.rules import DOCUMENT_RULES
from rag_pipeline.definitions import build_defs
from rag_pipeline.ingestion.events import StageDone
from rag_pipeline.ingestion.planning import scan_docs
from rag_pipeline.orchestration.dead_runs import end_dead_runs
from rag_pipeline.orchestration.partitions import to_partition_key
from rag_pipeline.orchestration.resources import IngestionResource
from rag_pipeline_tests.book import PAGES, make_book, make_page, make_paragraph
from rag_pipeline_tests.orchestration.dagster_book import DagsterBook
from rag_pipeline_tests.orchestration.test_docs_sensor import carry_out, tick
from rag_pipeline_tests.orchestration.test_ingestion_assets import BROKEN

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rag_pipeline.ingestion.events import IngestionEvent


def open_book(
    root: Path, listen: Callable[[IngestionEvent], object] = lambda _: None
) -> DagsterBook:
    """Open the book and the instance in a folder, as a new process does."""
    book = make_book(root, {})
    resource = IngestionResource(book.build_context, listen=listen)
    (root / "dagster").mkdir(exist_ok=True)
    instance = dg.DagsterInstance.from_config(str(root / "dagster"))
    return DagsterBook(book, instance, build_defs({"ingestion": resource}), resource)


def change(root: Path, chosen: random.Random) -> None:
    """Edit, add, rename, delete, break or mend a page."""
    docs = root / "docs"
    pages = sorted(docs.rglob("*.md"))
    page = chosen.choice(pages)
    kind = chosen.choice(["edit", "add", "rename", "delete", "break", "mend"])
    text = make_page("Page", ("A", make_paragraph(chosen.randrange(1000))))
    if kind == "rename":
        page.rename(page.with_name(f"moved-{chosen.randrange(1000)}.md"))
    elif kind == "delete" and len(pages) > 2:
        page.unlink()
    else:
        target = docs / f"new-{chosen.randrange(1000)}.md" if kind == "add" else page
        target.write_text(f"{BROKEN}{chosen.random()}" if kind == "break" else text, "utf-8")


def kill_a_run(root: Path, chosen: random.Random) -> None:
    """Ingest in another process, which is killed after a random number of events."""
    left = chosen.randrange(1, 12)
    pid = os.fork()
    if pid == 0:

        def count(event: IngestionEvent) -> None:
            nonlocal left
            left -= isinstance(event, StageDone)
            if left == 0:
                os._exit(9)

        try:
            open_book(root, count).run()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def run_somehow(root: Path, chosen: random.Random) -> None:
    """Start a run as a command, the sensor or the UI does, or kill one."""
    kind = chosen.choice(["command", "sensor", "partition", "range", "kill", "kill"])
    if kind == "kill":
        kill_a_run(root, chosen)
        return
    book = open_book(root)
    end_dead_runs(book.instance)
    if kind == "command":
        book.run()
    elif kind == "sensor":
        settle(book, ticks=1)
    elif keys := list(book.instance.get_dynamic_partitions("docs")):
        first, last = sorted(chosen.choices(range(len(keys)), k=2))
        book.run(partition_range=(keys[first], keys[last if kind == "range" else first]))


def settle(book: DagsterBook, ticks: int = 3) -> None:
    """Let the sensor tick, and carry out what it requests."""
    for _ in range(ticks):
        result = tick(book)
        assert isinstance(result, dg.SensorResult), result
        for run_request in result.run_requests or ():
            carry_out(book, run_request)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_green_partitions_are_the_indexed_documents_and_red_ones_failed(
    tmp_path: Path, seed: int
) -> None:
    make_book(tmp_path, PAGES)
    chosen = random.Random(seed)  # noqa: S311  # not used for secrets
    for _ in range(6):
        change(tmp_path, chosen)
        run_somehow(tmp_path, chosen)
    book = open_book(tmp_path)
    settle(book)
    scan = scan_docs(book.resource.context)
    indexed = {to_partition_key(doc.doc_id) for doc in scan.plan.unchanged}
    failed = {to_partition_key(doc_id) for doc_id in scan.failures}
    assert indexed | failed == {to_partition_key(doc.doc_id) for doc in scan.discovery.docs}
    states = book.statuses("qdrant_points")
    assert states == dict.fromkeys(indexed, "MATERIALIZED") | dict.fromkeys(failed, "FAILED")
    assert book.partitions == indexed | failed
    for rule in DOCUMENT_RULES:
        assert book.read_verdicts(rule.name, *indexed) == dict.fromkeys(indexed, "SUCCEEDED")
