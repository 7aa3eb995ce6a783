"""The part with hosts whose clocks differ by minutes, with `faketime`."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from several_workers.book import (
    compare_with_clean_build,
    find_failed_runs,
    find_unfinished_runs,
    open_context,
    start,
)
from several_workers.hosts import make_hosts
from several_workers.kills import edit_book
from several_workers.shares import plan_shares, start_share

if TYPE_CHECKING:
    from collections.abc import Mapping

    from several_workers.book import Bench

_MINUTES: Final = 7
# faketime miscalculates the deadline with which Python sleeps on another clock.
_SLEEP: Final = "import select, time\ntime.sleep = lambda s: select.select([], [], [], s)\n"
_PATIENT: Final = {"INGEST_LOCK_TIMEOUT_S": "1800"}


def shift_clocks(bench: Bench) -> None:
    """Let a host whose clock is ahead and one whose clock is behind index the same book.

    They share the store, the state, Dagster's data and the ledger. First each indexes a share at
    the same time. Then one indexes while the other waits. Then one rebuilds while the other waits.
    """
    if not os.environ["LEDGER_URL"]:
        print("\nclocks: not run, because the locks are in files")
        return
    if shutil.which("faketime") is None:
        print("\nclocks: not run, because faketime is not installed (Debian package faketime)")
        return
    home, state = bench.root / "clocks-dagster", bench.root / "clocks-state"
    extra = {"DAGSTER_HOME": str(home), "STATE_URL": state.as_uri(), **_PATIENT}
    hosts = make_hosts(bench, "clocks", extra)
    ahead, behind = set_clock(bench, _MINUTES), set_clock(bench, -_MINUTES)
    print(f"\nOne host's clock is {_MINUTES} minutes ahead, another one's {_MINUTES} behind")
    edit_book(bench, 700)
    clocks: tuple[dict[str, str], ...] = (ahead, behind, {})
    shares = plan_shares(hosts[0])
    workers = [
        start_share(host, share, clock=clock)
        for host, share, clock in zip(hosts, shares, clocks, strict=False)
    ]
    for worker in workers:
        worker.join(1800)
    bench.check("all workers complete their shares", not any(one.exitcode for one in workers))
    bench.check("the ledger's times differ by more than 12 minutes", _is_spread(hosts[0]))
    for first, second, words in (
        (hosts[0] | ahead, hosts[1] | behind, ()),
        (hosts[1] | behind, hosts[0] | ahead, ("--rebuild",)),
    ):
        edit_book(bench, 701 + len(words))
        _run_both(bench, first, second, *words)
    compare_with_clean_build(bench, hosts[2], "clocks-clean")
    failed, left = find_failed_runs(hosts[2]), find_unfinished_runs(hosts[2])
    bench.check(f"{len(failed)} runs are marked as failed", not failed)
    bench.check(f"{len(left)} runs count as in progress", not left)
    catalog = open_context(hosts[2]).services.catalog
    current = catalog.current_id()
    catalog.sweep()
    catalog.roll_back()
    catalog.roll_back()
    bench.check("the earlier collection is still there", catalog.current_id() == current)


def set_clock(bench: Bench, minutes: int) -> dict[str, str]:
    """Return the environment of a process whose clock is some minutes ahead, or behind.

    Times of files stay right, as on a host that mounts another one's folder.
    """
    command = ["faketime", "-m", "-f", f"{minutes:+}m", "env"]
    out = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    pairs = (line.partition("=") for line in out.splitlines())
    loaded = {name: value for name, _, value in pairs if name in {"LD_PRELOAD", "FAKETIME"}}
    start_up = bench.root / "clocks" / "sitecustomize.py"
    start_up.parent.mkdir(exist_ok=True)
    start_up.write_text(_SLEEP, encoding="utf-8")
    only = {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1"}
    return {**loaded, **only, "PYTHONPATH": str(start_up.parent)}


def _run_both(
    bench: Bench, first: Mapping[str, str], second: Mapping[str, str], *words: str
) -> None:
    """Start an ingestion, and another one on the other host that waits for it and prunes."""
    asked = len(bench.slow.received)
    one = start(first, "ingest", *words)
    while len(bench.slow.received) == asked and one.poll() is None:
        time.sleep(0.05)
    other = start(second, "ingest", "--prune-cache")
    for process in (one, other):
        process.communicate(timeout=1800)
    name = " ".join(("ingest", *words))
    codes = (one.returncode, other.returncode)
    bench.check(f"`{name}` and an ingestion that waits for it complete", codes == (0, 0))


def _is_spread(environment: Mapping[str, str]) -> bool:
    """Return True if the times in the ledger differ by nearly as much as the clocks."""
    services = open_context(environment).services
    entries = services.open_ledger(services.catalog.current_id() or "").entries().values()
    times = [datetime.fromisoformat(entry.indexed_at) for entry in entries]
    return max(times) - min(times) > timedelta(minutes=2 * _MINUTES - 2)
