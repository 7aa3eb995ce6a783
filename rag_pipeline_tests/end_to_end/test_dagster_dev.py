"""Tests of `dg dev` with its real webserver and daemon, and of the state that Dagster shows."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest
import yaml

from rag_pipeline.core.models import Stage
from rag_pipeline.orchestration.instance import INSTANCE_SETTINGS
from rag_pipeline_tests.book import PAGES, make_page, make_paragraph
from rag_pipeline_tests.end_to_end import quick_location
from rag_pipeline_tests.end_to_end.command import Command, Outcome, embed, make_command
from rag_pipeline_tests.loopback import serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
LARGE = "module-1/large.md"
PATIENCE_S = 240.0  # three times as long as a tick and a run on a busy machine with two cores

RUNS = """
{ runsOrError { ... on Runs { results { runId status pipelineName tags { key }
  repositoryOrigin { repositoryLocationName } } } } }
"""
STATUSES = """
{ assetNodes(assetKeys: [{path: ["qdrant_points"]}]) { assetPartitionStatuses {
  ... on DefaultPartitionStatuses { materializedPartitions failedPartitions } } } }
"""
VERDICTS = """
{ assetNodes(assetKeys: [{path: ["qdrant_points"]}]) { assetChecksOrError {
  ... on AssetChecks { checks { name partitionStatuses {
  ... on AssetCheckDefaultPartitionStatuses { succeededPartitions } } } } } } }
"""
CHECKS = """
{ assetNodes(assetKeys: [{path: ["book_index"]}]) { assetChecksOrError {
  ... on AssetChecks { checks { name canExecuteIndividually jobNames
    executionForLatestMaterialization { status } } } } } }
"""
LAUNCH = """
mutation ($params: ExecutionParams!) { launchRun(executionParams: $params) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }
"""


REEXECUTE = """
mutation ($params: ReexecutionParams!) { launchRunReexecution(reexecutionParams: $params) {
  __typename ... on PythonError { message } } }
"""


class Server:
    """A client of the webserver's GraphQL endpoint."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, query: str, **variables: object) -> dict[str, Any]:
        """Send a query and return its data; raises an OSError while the server does not answer."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/graphql", body, headers)  # noqa: S310  # http to 127.0.0.1
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310  # the same
            found = json.load(answer)
        assert "errors" not in found, found
        return dict(found["data"])

    def runs(self) -> list[dict[str, Any]]:
        """Return all runs, oldest first, except runs of the nightly schedules."""
        runs = reversed(self.ask(RUNS)["runsOrError"]["results"])
        nightly = {"key": "dagster/schedule_name"}
        return [run for run in runs if nightly not in run["tags"]]

    def ended_runs(self, count: int) -> list[str] | None:
        """Return the states of all runs if at least `count` exist and all have ended, else None."""
        states = [run["status"] for run in self.runs()]
        done = len(states) >= count and set(states) <= {"SUCCESS", "FAILURE", "CANCELED"}
        return states if done else None

    def store_check(self) -> dict[str, Any]:
        """Return the asset check `store_matches_ledger` as the asset's page shows it."""
        (node,) = self.ask(CHECKS)["assetNodes"]
        checks = node["assetChecksOrError"]["checks"]
        return next(check for check in checks if check["name"] == "store_matches_ledger")

    def partitions(self) -> dict[str, set[str]]:
        """Return the materialized and the failed documents as the asset's page shows them.

        Each materialized document has passed its check.
        """
        (node,) = self.ask(STATUSES)["assetNodes"]
        found = node["assetPartitionStatuses"]
        states = {key: set(found[f"{key}Partitions"]) for key in ("materialized", "failed")}
        (node,) = self.ask(VERDICTS)["assetNodes"]
        (check,) = node["assetChecksOrError"]["checks"]
        assert set(check["partitionStatuses"]["succeededPartitions"]) == states["materialized"]
        return states


def wait_for(look: Callable[[], Any]) -> Any:  # noqa: ANN401  # the result of `look`
    """Call `look` until it returns a true value, and return that value."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            found = look()
        except (urllib.error.URLError, OSError):
            found = None
        if found:
            return found
        time.sleep(0.5)
    pytest.fail(f"nothing was found within {PATIENCE_S:g} s")


def find_free_port() -> int:
    """Return a TCP port of 127.0.0.1 that no process uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def find_descendants(pid: int) -> list[int]:
    """Return the ids of all child processes, their children, and so on."""
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(status.parent.name))
    found, pending = [], [pid]
    while pending:
        own = children.get(pending.pop(), [])
        found += own
        pending += own
    return found


def make_home(command: Command) -> Path:
    """Create DAGSTER_HOME with the project's settings, and return it."""
    home = command.root / "dagster-home"
    home.mkdir(exist_ok=True)
    (home / "dagster.yaml").write_text(INSTANCE_SETTINGS.read_text("utf-8"), "utf-8")
    return home


@contextmanager
def run_dagster_dev(command: Command) -> Iterator[Server]:
    """Run `dg dev` as `make dev` does in the background of a shell, where SIGINT is ignored.

    After the `with` block, SIGTERM must end it with all its processes.
    """
    home = make_home(command)
    port = find_free_port()
    log = (command.root / "dagster-dev.log").open("wb")
    project = yaml.safe_load((ROOT / "workspace.yaml").read_text("utf-8"))
    project["load_from"][0]["python_module"]["module_name"] = quick_location.__name__
    workspace = command.root / "workspace.yaml"
    workspace.write_text(yaml.safe_dump(project), "utf-8")
    prepared = [sys.executable, "-m", "rag_pipeline.orchestration.instance"]
    dev = ["dg", "dev", "-w", str(workspace), "-h", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(
        ["/bin/sh", "-c", 'trap "" INT; exec "$@"', "sh", *prepared, *dev],
        env=command.environment | {"DAGSTER_HOME": str(home), "PYTHONPATH": str(Path.cwd())},
        cwd=command.root,
        stdout=log,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
    )
    try:
        yield Server(f"http://127.0.0.1:{port}")
    finally:
        started = [process.pid, *find_descendants(process.pid)]
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        deadline = time.monotonic() + 60  # the code server ends after its parent
        while time.monotonic() < deadline and any(is_ours(pid, home) for pid in started[1:]):
            time.sleep(0.5)
        left = [pid for pid in started[1:] if is_ours(pid, home)]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        log.close()
        assert process.returncode != -signal.SIGKILL, "SIGTERM did not end dg dev"
        assert not left, "processes outlived dg dev"


def is_ours(pid: int, home: Path) -> bool:
    """Return True if the process still runs and was started with this Dagster home."""
    try:
        return str(home).encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")
def test_the_daemon_ingests_changed_pages_with_one_run_per_tick(tmp_path: Path) -> None:
    with serve(embed) as embedding:
        command = make_command(tmp_path, embedding.url)
        home = str(make_home(command))
        assert command.run("ingest", DAGSTER_HOME=home).code == 0
        with run_dagster_dev(command) as server:
            assert wait_for(lambda: server.ended_runs(1)) == ["SUCCESS"]
            assert server.partitions() == {"materialized": set(PAGES), "failed": set()}
            (first,) = server.runs()
            assert first["repositoryOrigin"] == {"repositoryLocationName": "rag_pipeline"}
            again = {"parentRunId": first["runId"], "strategy": "ALL_STEPS"}
            reply = server.ask(REEXECUTE, params=again)["launchRunReexecution"]
            assert reply["__typename"] == "LaunchRunSuccess", reply
            assert wait_for(lambda: server.ended_runs(2)) == ["SUCCESS"] * 2

            book = command.book
            book.write("new.md", make_page("New", ("A", make_paragraph(90))))
            book.edit(LARGE, "## Two", "## Second")
            book.move("intro.md", "module-2/intro.md")
            (book.docs / "module-1/small page.md").unlink()
            broken = book.write("broken.md", "---\ntitle: [\n---\n")
            assert wait_for(lambda: server.ended_runs(3))[2:] == ["FAILURE"]
            there = {LARGE, "new.md", "module-2/intro.md"}
            assert server.partitions() == {"materialized": there, "failed": {"broken.md"}}

            broken.write_text("---\ntitle: Mended\n---\n\nWhole.\n", "utf-8")
            assert wait_for(lambda: server.ended_runs(4))[2:] == ["FAILURE", "SUCCESS"]
            there |= {"broken.md"}
            assert server.partitions() == {"materialized": there, "failed": set()}
            assert all(run["pipelineName"] == "ingest" for run in server.runs())

            assert launch(server, LARGE) == "LaunchRunSuccess"
            assert wait_for(lambda: server.ended_runs(5))[-1] == "SUCCESS"
            assert server.partitions() == {"materialized": there, "failed": set()}

            assert server.store_check()["canExecuteIndividually"] == "CAN_EXECUTE"
            assert launch_store_check(server) == "LaunchRunSuccess"
            assert wait_for(lambda: server.ended_runs(6))[-1] == "SUCCESS"
            found = server.store_check()["executionForLatestMaterialization"]
            assert found["status"] == "SUCCEEDED"
        assert "warning" not in (tmp_path / "dagster-dev.log").read_text("utf-8").lower()
        report = command.run("ingest", "--json", DAGSTER_HOME=home).json
        assert (report["docs_unchanged"], report["docs_processed"]) == (4, 0)


@pytest.mark.slow
def test_a_repair_lets_dagster_show_the_documents_that_are_indexed(
    command: Command, call: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("ingest").code == 0
    (home,) = command.root.glob("data/*/dagster")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    with dg.DagsterInstance.from_config(str(home)) as instance:
        instance.delete_dynamic_partition("docs", LARGE)
        instance.add_dynamic_partitions("docs", ["gone.md"])
    assert call("audit", "--repair").code == 0
    with dg.DagsterInstance.from_config(str(home)) as instance:
        assert set(instance.get_dynamic_partitions("docs")) == set(PAGES)


@pytest.mark.slow
def test_dg_checks_the_project_without_a_warning(command: Command) -> None:
    check = ["check", "defs", "--no-check-yaml"]  # 1.13.0 looks for a folder of YAML files
    done = subprocess.run(
        [str(Path(sys.executable).with_name("dg")), *check],
        env=command.environment | {"VIRTUAL_ENV": sys.prefix},  # an activated environment
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown = (done.stdout + done.stderr).lower()
    if Path(sys.prefix).parent == ROOT:
        assert "warning" not in shown
    else:  # dg rightly says that the tests run with another environment than the project's .venv
        named = set(re.findall(r'add "(\w+)" to', shown))  # some versions say it twice
        assert named == {"project_and_activated_venv_mismatch"}


def launch(server: Server, partition: str) -> str:
    """Materialize one document as the button in the UI does; return the type of the reply."""
    selector = {
        "pipelineName": "__ASSET_JOB",
        "assetSelection": [{"path": [stage.value]} for stage in Stage],
    }
    return _launch(server, selector, [{"key": "dagster/partition", "value": partition}])


def launch_store_check(server: Server) -> str:
    """Run only the audit, as the button next to the check does; return the type of the reply."""
    check = {"assetKey": {"path": ["book_index"]}, "name": "store_matches_ledger"}
    selector = {
        "pipelineName": "__ASSET_JOB",
        "assetSelection": [],
        "assetCheckSelection": [check],
    }
    return _launch(server, selector, [])


def _launch(server: Server, selector: dict[str, Any], tags: list[dict[str, str]]) -> str:
    place = {
        "repositoryLocationName": "rag_pipeline",
        "repositoryName": "__repository__",
    }
    params = {"selector": place | selector, "mode": "default", "executionMetadata": {"tags": tags}}
    return str(server.ask(LAUNCH, params=params)["launchRun"]["__typename"])
