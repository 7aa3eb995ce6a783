"""The parts that kill and stop workers, and then compare the index with a clean build."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from rag_pipeline_tests.worker_processes import list_workers
from several_workers.book import (
    WORKERS,
    compare_with_clean_build,
    find_unfinished_runs,
    make_environment,
    run,
    start,
    write_page,
)
from several_workers.shares import MOMENTS, Accident, plan_shares, start_share

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from several_workers.book import Bench

_GONE: Final = 2  # documents that each edition deletes
_MOST_PASSED: Final = 3  # moments of its kind that a worker passes before it is killed


def edit_book(bench: Bench, edition: int) -> None:
    """Change the texts of half of the pages, and delete two. A later edition writes them again."""
    docs = bench.root / "docs"
    changed = bench.chance.sample(range(bench.sizes.docs), bench.sizes.docs // 2)
    for number in changed:
        write_page(docs, number, edition)
    for number in changed[:_GONE]:
        (docs / f"part-{number % 100}" / f"page-{number}.md").unlink()


def kill_workers(bench: Bench) -> None:
    """Kill workers of the command at random times and at writes; then compare the index."""
    environment = make_environment(bench.root, "kills", bench.slow.url)
    log = bench.root / "moments"
    killed, stopped, edition = 0, 0, 0
    while killed + _count_lines(log) < bench.sizes.kills or edition < 2:
        edition += 1
        edit_book(bench, edition)
        if edition % 2:
            kill_at_writes(bench, [environment] * WORKERS, log)
        else:
            more, stops = _kill_command(bench, environment, whole=bool(edition % 4))
            killed, stopped = killed + more, stopped + stops
    report = run(environment, "ingest", "--workers", str(WORKERS))
    print(f"\n{edition} ingestions of which half of the documents were new:")
    print(f"{killed} processes killed at random times, {stopped} of them stopped before")
    show_moments(log)
    print(f"the last ingestion processed {report['docs_processed']} documents")
    compare_with_clean_build(bench, environment, "kills-clean")
    bench.check("no run counts as in progress", not find_unfinished_runs(environment))


def kill_at_writes(bench: Bench, environments: Sequence[Mapping[str, str]], log: Path) -> None:
    """Start a worker per environment, and let each kill itself at a random moment of a write."""
    processes = []
    moments = bench.chance.sample(MOMENTS, len(environments))
    shares = plan_shares(environments[0])
    for environment, moment, work in zip(environments, moments, shares, strict=False):
        passed = bench.chance.randint(0, _MOST_PASSED)
        accident = Accident(signal.SIGKILL, moment, passed, log)
        processes.append(start_share(environment, work, accident))
    for process in processes:
        process.join(1800)


def show_moments(log: Path) -> None:
    """Print how many workers were killed at each kind of moment."""
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    counts = Counter(next(kind for kind in MOMENTS if line.startswith(kind)) for line in lines)
    print(f"{len(lines)} processes killed at a write:")
    for kind in MOMENTS:
        print(f"  {counts[kind]:3} {kind}")


def stop_workers(bench: Bench) -> None:
    """Stop a worker for a while; meanwhile others are refused, or take over after its lock is lost.

    The worker of the second round is stopped before its first write to the ledger, and the server
    ends its connections, as if its network had failed. Another ingestion indexes newer texts. Then
    the stopped worker continues with its old texts.
    """
    environment = make_environment(bench.root, "stops", bench.slow.url)
    log, seconds = bench.root / "stops.log", bench.sizes.stop_s
    print(f"\nWorkers stopped for {seconds:g} s, then continued")
    share = plan_shares(environment)[0]
    worker = start_share(environment, share, Accident(signal.SIGSTOP, "after store.up", 0, log))
    _wait_for_line(log, 1)
    refused = start(environment | {"INGEST_LOCK_TIMEOUT_S": "1"}, "ingest")
    refused.communicate(timeout=600)
    bench.check("another ingestion is refused meanwhile", refused.returncode == 1)
    time.sleep(seconds)
    _continue(worker.pid)
    worker.join(1800)
    bench.check("the worker completes its share", worker.exitcode == 0)
    if not environment["LEDGER_URL"]:
        return
    edit_book(bench, 100)
    share = plan_shares(environment)[0]
    stop = Accident(signal.SIGSTOP, "after cache.put_many", 0, log)
    worker = start_share(environment, share, stop)
    _wait_for_line(log, 2)
    ended = _end_connections(environment["LEDGER_URL"])
    edit_book(bench, 101)
    begun = time.monotonic()
    report = run(environment, "ingest")
    time.sleep(max(0.0, seconds - (time.monotonic() - begun)))
    stopped_s = time.monotonic() - begun
    _continue(worker.pid)
    worker.join(1800)
    print(f"{ended} connections of a worker ended, which was stopped for {stopped_s:.0f} s;")
    print(
        f"another ingestion indexed newer texts of {report['docs_processed']} documents meanwhile;"
    )
    print(f"the worker then exited with {worker.exitcode}")
    after = run(environment, "ingest")
    print(f"the last ingestion processed {after['docs_processed']} documents")
    compare_with_clean_build(bench, environment, "stops-clean")


def _kill_command(bench: Bench, environment: Mapping[str, str], *, whole: bool) -> tuple[int, int]:
    """Start the command, kill workers at random times, and count those killed and stopped.

    With `whole`, the command is killed too, as if the machine had failed.
    """
    chance = bench.chance
    process = start(environment, "ingest", "--workers", str(WORKERS))
    while process.poll() is None and not list_workers(process.pid):
        time.sleep(0.05)
    time.sleep(chance.uniform(0.5, bench.sizes.docs * bench.sizes.wait_s / 10))
    killed, stopped = 0, 0
    for pid in list_workers(process.pid)[:2]:
        with suppress(ProcessLookupError):
            if chance.random() < 0.3:
                os.kill(pid, signal.SIGSTOP)
                stopped += 1
                time.sleep(chance.uniform(0.5, 3.0))
                os.kill(pid, signal.SIGCONT)
            os.kill(pid, signal.SIGKILL)
            killed += 1
        time.sleep(chance.uniform(0.0, 2.0))
    if whole:
        left = list_workers(process.pid)
        process.kill()
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        killed += 1
    process.communicate()
    return killed, stopped


def _end_connections(url: str) -> int:
    """Let the Postgres server end all connections of other processes, and count them."""
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    statement = sa.text(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    with engine.connect() as connection:
        count = connection.execute(statement).scalar_one()
    engine.dispose()
    return int(count)


def _continue(pid: int | None) -> None:
    if pid is not None:
        os.kill(pid, signal.SIGCONT)


def _wait_for_line(log: Path, number: int) -> None:
    while _count_lines(log) < number:
        time.sleep(0.05)


def _count_lines(log: Path) -> int:
    return len(log.read_text(encoding="utf-8").splitlines()) if log.exists() else 0
