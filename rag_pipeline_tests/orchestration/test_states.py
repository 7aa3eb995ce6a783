"""After any sequence of changes, runs and kills, the partitions tell the state of the index."""

from __future__ import annotations

import os
import random
import shutil
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest

from rag_pipeline.core.models import Stage
from rag_pipeline.definitions import build_defs
from rag_pipeline.ingestion.events import StageDone
from rag_pipeline.ingestion.planning import scan_docs
from rag_pipeline.orchestration.checks import reconcile
from rag_pipeline.orchestration.dead_runs import end_dead_runs
from rag_pipeline.orchestration.partitions import find_newest, to_partition_key
from rag_pipeline.orchestration.resources import EvaluationResource, Ingestion
from rag_pipeline_tests.book import PAGES, make_book, make_page, make_paragraph
from rag_pipeline_tests.orchestration.dagster_book import STAGES, DagsterBook
from rag_pipeline_tests.orchestration.test_docs_sensor import carry_out, tick
from rag_pipeline_tests.orchestration.test_ingestion_assets import BROKEN

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rag_pipeline.evaluation.book import BookEvaluation
    from rag_pipeline.ingestion.events import IngestionEvent


def open_book(
    root: Path, listen: Callable[[IngestionEvent], object] = lambda _: None
) -> DagsterBook:
    """Open the book and the instance in a folder, as a new process does."""
    book = make_book(root, {})
    resource = Ingestion(book.build_context, listen=listen)
    instance = dg.DagsterInstance.from_config(os.environ["DAGSTER_HOME"])
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


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_history: Path) -> Path:
    """A folder with a book that is not indexed, and a home of Dagster with the real settings."""
    make_book(tmp_path, PAGES)
    home = tmp_path / "dagster"
    shutil.copytree(empty_history, home)
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_green_partitions_are_the_indexed_documents_and_red_ones_failed(
    root: Path, seed: int
) -> None:
    chosen = random.Random(seed)  # noqa: S311  # not used for secrets
    for _ in range(6):
        change(root, chosen)
        run_somehow(root, chosen)
    book = open_book(root)
    settle(book)
    scan = scan_docs(book.resource.context)
    indexed = {to_partition_key(doc.doc_id) for doc in scan.unchanged}
    failed = {to_partition_key(doc_id) for doc_id in scan.failures}
    assert indexed | failed == {to_partition_key(doc.doc_id) for doc in scan.discovery.docs}
    states = book.statuses("qdrant_points")
    assert states == dict.fromkeys(indexed, "MATERIALIZED") | dict.fromkeys(failed, "FAILED")
    assert book.partitions == indexed | failed
    assert book.read_verdicts(*indexed) == dict.fromkeys(indexed, "SUCCEEDED")


def test_a_history_without_runs_can_be_corrected_again(root: Path, empty_history: Path) -> None:
    assert open_book(root).run().success
    home = os.environ["DAGSTER_HOME"]
    shutil.rmtree(home)
    shutil.copytree(empty_history, home)
    book = open_book(root)
    scan = scan_docs(book.resource.context)
    for _ in range(2):
        reconcile(book.instance, book.resource.context, scan)
        assert book.statuses("qdrant_points") == dict.fromkeys(PAGES, "MATERIALIZED")
        assert book.read_verdicts(*PAGES) == dict.fromkeys(PAGES, "SUCCEEDED")
        # Another process corrects the history at the same time.
        for record in find_newest(book.instance, Stage.POINTS, PAGES).values():
            assert record.asset_materialization
            book.instance.report_runless_asset_event(record.asset_materialization)


def die(*_: object) -> Any:  # noqa: ANN401  # it never returns
    """Kill this process, as the system does when memory is short."""
    os.kill(os.getpid(), signal.SIGKILL)


def run_and_die(root: Path, origin: str) -> None:
    """Start a run as its origin does, in this process, which is killed during the run."""
    book = open_book(root, die)
    if origin == "command":
        book.run()
    elif origin == "sensor":
        settle(book, ticks=1)
    elif origin == "backfill":
        book.add_partitions(*PAGES)
        ends = {"start": next(iter(PAGES)), "end": list(PAGES)[-1]}
        tags = {f"dagster/asset_partition_range_{end}": key for end, key in ends.items()}
        book.run_assets(STAGES, tags | {"dagster/backfill": "abcdefgh"})
    else:

        class Killed(EvaluationResource):
            def evaluate(self) -> BookEvaluation:
                return die()

        definitions = build_defs({"evaluation": Killed()})
        replace(book, definitions=definitions).run_assets(["retrieval_evaluation"])


@pytest.mark.slow
@pytest.mark.parametrize("origin", ["command", "sensor", "backfill", "evaluation"])
def test_a_killed_run_of_any_origin_is_marked_as_failed_and_blocks_nothing(
    root: Path, origin: str
) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            run_and_die(root, origin)
        finally:
            os._exit(0)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL
    book = open_book(root)
    (run,) = book.instance.get_runs()
    assert run.status is dg.DagsterRunStatus.STARTED
    settle(book)
    found = book.instance.get_run_by_id(run.run_id)
    assert found
    assert found.status is dg.DagsterRunStatus.FAILURE
    assert open_book(root).run().success
    assert book.statuses("qdrant_points") == dict.fromkeys(PAGES, "MATERIALIZED")
