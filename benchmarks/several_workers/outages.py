"""The part in which Postgres or S3 is gone for a while in the middle of an ingestion."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Final

from rag_pipeline_tests.relay import Relay
from several_workers.book import WORKERS, compare_with_clean_build, run, start
from several_workers.hosts import make_hosts
from several_workers.kills import edit_book
from several_workers.objects import serve_objects

if TYPE_CHECKING:
    from collections.abc import Mapping

    from several_workers.book import Bench

_SERVICES: Final = {"S3": "AWS_ENDPOINT_URL", "Postgres": "LEDGER_URL"}


def interrupt_services(bench: Bench) -> None:
    """Cut the connections to Postgres and to S3, or lose all packets, while workers index.

    Each time, the ingestion waits or fails with a message, and the next one completes the index.
    """
    if not os.environ["LEDGER_URL"]:
        print("\noutages: not run, because the ledger is in files")
        return
    with serve_objects() as (extra, _):
        hosts = make_hosts(bench, "outages", extra)
        if not bench.is_short:
            run(hosts[0], "ingest", "--workers", str(WORKERS))
        edition = 600
        print(f"\nA service gone for {bench.sizes.outage_s:g} s in the middle of an ingestion")
        for name in _SERVICES:
            for is_silent in (False,) if bench.is_short else (False, True):
                edition += 1
                edit_book(bench, edition)
                _interrupt(bench, hosts[edition % 2], name, is_silent=is_silent)
        compare_with_clean_build(bench, hosts[2], "outages-clean")


def _interrupt(bench: Bench, environment: Mapping[str, str], name: str, *, is_silent: bool) -> None:
    """Let a service fail during an ingestion, and check this ingestion and the next one."""
    setting = _SERVICES[name]
    asked = len(bench.slow.received)
    with Relay(environment[setting]) as relay:
        process = start({**environment, setting: relay.url}, "ingest", "--json")
        while len(bench.slow.received) - asked < bench.sizes.docs // 10 and process.poll() is None:
            time.sleep(0.05)
        was_running = process.poll() is None
        begun = time.monotonic()
        (relay.hold if is_silent else relay.cut)()
        while time.monotonic() - begun < bench.sizes.outage_s and process.poll() is None:
            time.sleep(0.1)
        waited = process.poll() is None
        relay.restore()
        out, _ = process.communicate(timeout=1800)
        ended_s = time.monotonic() - begun
    report = json.loads(out)
    message = _find_message(report)
    how = "loses all packets" if is_silent else "ends all connections"
    print(f"{name} {how}:")
    print(f"  exit code {process.returncode}, {ended_s:.0f} s after the beginning of the outage")
    if message:
        print(f"  {message[:300]}")
    after = run(environment, "ingest")
    print(f"  the next ingestion processed {after['docs_processed']} documents")
    bench.check("the ingestion was in progress", was_running)
    bench.check("it waited, or failed with a message", waited or bool(message))
    bench.check("its exit code tells of failures", bool(message) == bool(process.returncode))
    bench.check("the next ingestion completes", after.get("docs_failed") == 0)


def _find_message(report: Mapping[str, object]) -> str:
    """Return the message of the first failure in a report, with its code; empty if all is well."""
    error = report.get("error")
    failures = [error] if error else report.get("failures")
    if not isinstance(failures, list) or not failures:
        return ""
    first = failures[0]
    more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
    code = first.get("code") or first.get("error")
    return f"{code}: {first.get('message')}{more}"
