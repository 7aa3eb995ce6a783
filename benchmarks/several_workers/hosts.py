"""The parts with a DATA_DIR for each worker: state on an S3 server, and namespaces as hosts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from several_workers.book import (
    WORKERS,
    compare_with_clean_build,
    find_unfinished_runs,
    make_environment,
    open_context,
    run,
    start,
)
from several_workers.kills import edit_book, kill_at_writes, show_moments
from several_workers.objects import BUCKET, serve_objects

if TYPE_CHECKING:
    from collections.abc import Mapping

    from several_workers.book import Bench

_NO_DELETES: Final = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:DeleteObject",
            "Resource": f"arn:aws:s3:::{BUCKET}/*",
        }
    ],
}


def use_object_store(bench: Bench) -> None:
    """Kill workers whose state is on S3, and deny deletions there."""
    if not os.environ["LEDGER_URL"]:
        print("\nstate on S3: not run, because the locks are in files")
        return
    with serve_objects() as (extra, client):
        hosts = make_hosts(bench, "s3", extra)
        log = bench.root / "s3-moments"
        rounds = 1 if bench.is_short else 7
        for edition in range(200, 200 + rounds):
            edit_book(bench, edition)
            kill_at_writes(bench, hosts, log)
        report = run(hosts[0], "ingest")
        print(f"\nState on S3, {WORKERS} workers with a DATA_DIR each, {rounds} ingestions")
        show_moments(log)
        print(f"the last ingestion processed {report['docs_processed']} documents")
        _deny_deletes(bench, hosts[1], client)
        compare_with_clean_build(bench, hosts[0], "s3-clean")


def use_namespaces(bench: Bench) -> None:
    """Kill a host in the middle of its run; another host ends the run and completes the index.

    Each host is a namespace of processes, mounts and host name, and has a DATA_DIR of its own.
    """
    probe = ["unshare", "--uts", "--pid", "--mount", "--fork", "true"]
    has_unshare = shutil.which("unshare") is not None
    if not has_unshare or subprocess.run(probe, check=False, capture_output=True).returncode:
        print("\nhosts: not run, because no namespaces can be created here")
        return
    home = bench.root / "hosts-dagster"
    hosts = make_hosts(bench, "hosts", {"DAGSTER_HOME": str(home)})
    edit_book(bench, 300)
    first = _start_host(hosts[0], 0, "--workers", str(WORKERS))
    _wait_for_run(hosts[0], first)
    time.sleep(2)
    first.kill()  # unshare ends its child, which is the first process of the namespace
    first.wait()
    left = find_unfinished_runs(hosts[0])
    print(f"\nA host was killed while it indexed; {len(left)} run counted as in progress")
    second = _start_host(hosts[1], 1)
    second.communicate(timeout=1800)
    bench.check("another host completes the ingestion", second.returncode == 0)
    compare_with_clean_build(bench, hosts[1], "hosts-clean")
    left = find_unfinished_runs(hosts[1])
    if hosts[1]["LEDGER_URL"]:
        bench.check("no run counts as in progress after that", not left)
    else:
        print(f"  without Postgres, {len(left)} run of the killed host counts as in progress")


def make_hosts(bench: Bench, name: str, extra: Mapping[str, str]) -> list[dict[str, str]]:
    """Return settings for each worker, with separate DATA_DIRs that share only the store's folder.

    A Qdrant server would be shared in its place.
    """
    environments = []
    shared = bench.root / f"{name}-store"
    shared.mkdir()
    for number in range(WORKERS):
        environment = make_environment(bench.root, f"{name}-{number}", bench.slow.url)
        environment |= {"QDRANT_COLLECTION": name, "STATE_NAME": name, **extra}
        join_store(environment, shared)
        environments.append(environment)
    return environments


def join_store(environment: Mapping[str, str], shared: Path) -> None:
    """Let a book, which has no state folder yet, use the folder of another one's store."""
    state_dir = open_context(environment).settings.state_dir
    state_dir.mkdir(parents=True)
    (state_dir / "store").symlink_to(shared)


def _deny_deletes(bench: Bench, environment: dict[str, str], client: Any) -> None:  # noqa: ANN401  # boto3 has no types
    """Ingest with a bucket that denies deletions, and print what the command says."""
    edit_book(bench, 220)
    client.put_bucket_policy(Bucket=BUCKET, Policy=json.dumps(_NO_DELETES))
    denied = start(environment, "ingest", "--json")
    report = json.loads(denied.communicate(timeout=1800)[0])
    failures = report.get("failures") or [report]
    print(f"\nA bucket that denies deletions: exit code {denied.returncode}; the command says:")
    message = str(failures[0].get("message", failures[0]))
    print(f"  {message[:300]}")
    bench.check("the command fails", denied.returncode == 1)
    bench.check("it names the object", "does not allow the deletion of s3://" in message)
    client.delete_bucket_policy(Bucket=BUCKET)
    run(environment, "ingest")


def _start_host(environment: Mapping[str, str], number: int, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "rag_pipeline.cli", "ingest", *words]
    namespace = ["unshare", "--uts", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child"]
    inner = ["sh", "-c", f'hostname host-{number} && exec "$@"', "sh", *command]
    return subprocess.Popen(
        [*namespace, *inner],
        env=dict(environment),
        cwd=environment["HOME"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def _wait_for_run(environment: Mapping[str, str], process: subprocess.Popen[str]) -> None:
    """Wait until the Dagster run of a command exists."""
    for _ in range(600):
        if process.poll() is not None:
            raise RuntimeError("the command of the first host ended too early")
        has_runs = (Path(environment["DAGSTER_HOME"]) / "history" / "runs.db").exists()
        if has_runs and find_unfinished_runs(environment):
            return
        time.sleep(0.1)
