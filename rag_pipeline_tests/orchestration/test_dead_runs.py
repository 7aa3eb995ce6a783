"""Tests of the detection of dead runs of any machine, with locks in Postgres."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import dagster as dg
import pytest
import sqlalchemy as sa

from rag_pipeline.adapters.database.ledger import BookState
from rag_pipeline.adapters.database.postgres import (
    PostgresDatabase,
    PostgresLocks,
    connect_postgres,
)
from rag_pipeline.core.errors import DatabaseUnavailableError
from rag_pipeline.ingestion.events import RunFailed, StageDone
from rag_pipeline.orchestration import dead_runs
from rag_pipeline.orchestration.dead_runs import (
    LOCATION,
    LOCK_TAG,
    PROCESS_TAG,
    begin_run,
    end_dead_runs,
    hold_run,
)
from rag_pipeline.orchestration.jobs import INGEST_JOB
from rag_pipeline.orchestration.resources import Ingestion
from rag_pipeline_tests.adapters.database.databases import run_postgres

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rag_pipeline.core.protocols import RunLocks
    from rag_pipeline.ingestion.events import IngestionEvent
    from rag_pipeline_tests.orchestration.dagster_book import DagsterBook

pytestmark = pytest.mark.slow

ELSEWHERE = {PROCESS_TAG: "elsewhere:7"}

HOLDER = """
import sys, time
from rag_pipeline.adapters.database.ledger import BookState
from rag_pipeline.adapters.database.postgres import *
database = PostgresDatabase(connect_postgres("DATABASE_URL", sys.argv[1]), "DATABASE_URL")
locks = PostgresLocks(database, "book")
lock = BookState(database, "book", locks, locks).hold(sys.argv[2])
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a Postgres server; the test is skipped if Postgres is not installed."""
    with run_postgres() as url:
        yield url


def connect(address: str) -> BookState:
    database = PostgresDatabase(connect_postgres("DATABASE_URL", address), "DATABASE_URL")
    locks = PostgresLocks(database, "book")
    return BookState(database, "book", locks, locks)


@pytest.fixture
def locks(address: str) -> Iterator[BookState]:
    """The locks of the runs of the book. Those that this process holds are released at the end."""
    state = connect(address)
    yield state
    held = dead_runs._held  # noqa: SLF001  # a process of Dagster releases its last lock when it ends
    while held:
        held.popitem()[1].release()
    state.database.close()


@pytest.fixture
def _confirmed_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs without a lock are dead after a shorter time."""
    monkeypatch.setattr(dead_runs, "_CONFIRMING_S", 1.0)


def create_run(
    dagster_book: DagsterBook,
    tags: dict[str, str],
    status: dg.DagsterRunStatus = dg.DagsterRunStatus.STARTED,
    run_id: str | None = None,
) -> str:
    job = dagster_book.definitions.resolve_job_def(INGEST_JOB.name)
    run = dagster_book.instance.create_run_for_job(job, tags=tags, status=status, run_id=run_id)
    return run.run_id


def create_begun_run(dagster_book: DagsterBook, book: str = "book") -> str:
    """Create a run of a process on another machine that has taken the lock of the run."""
    run_id = create_run(dagster_book, ELSEWHERE)
    dagster_book.instance.add_run_tags(run_id, {LOCK_TAG: f"{book}/{run_id}"})
    return run_id


def read_status(dagster_book: DagsterBook, run_id: str) -> dg.DagsterRunStatus:
    run = dagster_book.instance.get_run_by_id(run_id)
    assert run is not None
    return run.status


def wait_until_released(locks: BookState, run_id: str) -> None:
    """Wait until the server has noticed that the connection of a lock was closed."""
    deadline = time.monotonic() + 30
    while locks.find_held([run_id]):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def read_failure(dagster_book: DagsterBook, run_id: str) -> str:
    events = dagster_book.instance.all_logs(run_id)
    return " ".join(event.dagster_event.message or "" for event in events if event.dagster_event)


def with_locks(
    dagster_book: DagsterBook,
    locks: RunLocks,
    listen: Callable[[IngestionEvent], object] = lambda _: None,
) -> DagsterBook:
    """Return the book with the locks, and with a function that sees each event of a run."""
    from rag_pipeline.definitions import build_defs  # noqa: PLC0415  # as in the fixture

    context = dagster_book.resource.context
    context = replace(context, services=replace(context.services, run_locks=locks))
    resource = Ingestion(lambda: context, listen=listen)
    definitions = build_defs({"ingestion": resource})
    return replace(dagster_book, definitions=definitions, resource=resource)


@contextmanager
def hold_elsewhere(address: str, run_id: str) -> Iterator[subprocess.Popen[str]]:
    """Hold the lock of a run in another process."""
    command = [sys.executable, "-c", HOLDER, address, run_id]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        try:
            yield holder
        finally:
            holder.kill()


def test_a_run_of_another_machine_is_dead_as_soon_as_its_process_was_killed(
    dagster_book: DagsterBook, locks: BookState, address: str
) -> None:
    run_id = create_begun_run(dagster_book)
    with hold_elsewhere(address, run_id) as holder:
        begun = time.monotonic()
        end_dead_runs(dagster_book.instance, locks)
        assert time.monotonic() - begun < 10  # a living run costs no wait
        assert read_status(dagster_book, run_id) is dg.DagsterRunStatus.STARTED
        holder.kill()
        holder.wait()
        end_dead_runs(dagster_book.instance, locks)
    assert read_status(dagster_book, run_id) is dg.DagsterRunStatus.FAILURE
    assert "no process holds its lock" in read_failure(dagster_book, run_id)


@pytest.mark.usefixtures("_confirmed_soon")
@pytest.mark.parametrize("status", ["STARTING", "STARTED"])
def test_a_repeated_run_is_not_dead_because_of_the_tags_of_the_first(
    dagster_book: DagsterBook, locks: BookState, status: str
) -> None:
    first = create_begun_run(dagster_book)
    dead_process = f"{os.uname().nodename}:{2**22 + 1}"
    inherited = {PROCESS_TAG: dead_process, LOCK_TAG: f"book/{first}"}
    repeated = create_run(dagster_book, inherited, dg.DagsterRunStatus(status))
    end_dead_runs(dagster_book.instance, locks)
    assert read_status(dagster_book, first) is dg.DagsterRunStatus.FAILURE
    assert read_status(dagster_book, repeated) is dg.DagsterRunStatus(status)


@pytest.mark.parametrize(
    "tags",
    [{"dagster/code_location": LOCATION}, {PROCESS_TAG: "elsewhere:7", LOCK_TAG: "book/first"}],
    ids=["new", "repeated"],
)
def test_a_run_that_was_started_but_took_no_lock_is_dead_after_a_long_time(
    dagster_book: DagsterBook,
    locks: BookState,
    monkeypatch: pytest.MonkeyPatch,
    tags: dict[str, str],
) -> None:
    run_id = create_run(dagster_book, tags)
    waiting = create_run(dagster_book, tags, dg.DagsterRunStatus.STARTING)
    end_dead_runs(dagster_book.instance, locks)
    assert read_status(dagster_book, run_id) is dg.DagsterRunStatus.STARTED
    monkeypatch.setattr(dead_runs, "_LONGEST_BEGINNING_S", -1.0)
    end_dead_runs(dagster_book.instance, locks)
    assert read_status(dagster_book, run_id) is dg.DagsterRunStatus.FAILURE
    assert read_status(dagster_book, waiting) is dg.DagsterRunStatus.STARTING


@pytest.mark.usefixtures("_confirmed_soon")
def test_runs_of_other_books_and_runs_without_a_ledger_in_postgres_are_left_alone(
    dagster_book: DagsterBook, locks: BookState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_runs, "_LONGEST_BEGINNING_S", -1.0)
    runs = [create_begun_run(dagster_book, "other"), create_run(dagster_book, ELSEWHERE)]
    end_dead_runs(dagster_book.instance, locks)
    assert {read_status(dagster_book, run_id) for run_id in runs} == {dg.DagsterRunStatus.STARTED}


def test_no_run_is_dead_because_the_database_does_not_answer(dagster_book: DagsterBook) -> None:
    run_id = create_begun_run(dagster_book)
    gone = connect("postgresql://tutor@127.0.0.1:1/rag")
    end_dead_runs(dagster_book.instance, gone)
    assert read_status(dagster_book, run_id) is dg.DagsterRunStatus.STARTED


@pytest.mark.usefixtures("_confirmed_soon")
def test_a_run_holds_its_lock_until_dagster_has_recorded_its_end(
    dagster_book: DagsterBook, locks: BookState
) -> None:
    seen: list[set[str]] = []

    def look(event: IngestionEvent) -> None:
        if isinstance(event, StageDone) and not seen:
            (run,) = dagster_book.instance.get_runs()
            seen.append(locks.find_held([run.run_id]))
            assert run.tags[LOCK_TAG] == f"book/{run.run_id}"
            end_dead_runs(dagster_book.instance, locks)

    book = with_locks(dagster_book, locks, look)
    first = book.run()
    assert first.success
    assert seen == [{first.run_id}]
    assert locks.find_held([first.run_id]) == {first.run_id}  # until the next run of this process
    second = book.run(config={"reread": True})
    wait_until_released(locks, first.run_id)
    assert locks.find_held([second.run_id]) == {second.run_id}


def test_a_run_of_a_command_releases_its_lock(dagster_book: DagsterBook, locks: BookState) -> None:
    run_id = create_run(dagster_book, {})
    with hold_run(run_id, locks) as tags:
        assert tags[LOCK_TAG] == f"book/{run_id}"
        begin_run(dagster_book.instance, run_id, locks)
        assert locks.find_held([run_id]) == {run_id}
    wait_until_released(locks, run_id)


def test_a_run_that_loses_its_lock_ends_by_itself_and_is_not_marked_before(
    dagster_book: DagsterBook, locks: BookState
) -> None:
    events: list[IngestionEvent] = []
    statuses: list[dg.DagsterRunStatus] = []

    def interrupt(event: IngestionEvent) -> None:
        events.append(event)
        if isinstance(event, StageDone) and not statuses:
            (run,) = dagster_book.instance.get_runs()
            with locks.database.engine.connect() as connection:
                statement = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE objsubid = 1"
                connection.execute(sa.text(statement))
            end_dead_runs(dagster_book.instance, locks)  # as another machine does at this moment
            statuses.append(read_status(dagster_book, run.run_id))
            assert locks.find_held([run.run_id])

    book = with_locks(dagster_book, locks, interrupt)
    result = book.run()
    assert statuses == [dg.DagsterRunStatus.STARTED]
    assert not result.success
    failed = events[-1]
    assert isinstance(failed, RunFailed)
    assert isinstance(failed.error, DatabaseUnavailableError)
    assert with_locks(dagster_book, locks).run().success
