"""Tests with the mark `qdrant` never pass without a Qdrant server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from rag_pipeline_tests.loopback import Reply, find_closed_port, serve

FOLDER = Path(__file__).parent
AT_LEAST = 50  # lowest expected number of tests with the mark


def run_pytest(marks: str, *options: str, url: str | None = None) -> str:
    """Run the tests of this folder that have the given marks, and return the printed output.

    Args:
        marks: Expression for pytest's option -m.
        options: More options for pytest.
        url: Value of QDRANT_URL; None leaves the variable unset.
    """
    environment = {name: text for name, text in os.environ.items() if name != "QDRANT_URL"}
    if url is not None:
        environment["QDRANT_URL"] = url
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        [*command, "-m", marks, *options, str(FOLDER)],
        env=environment, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert not done.stderr
    return done.stdout


def check_that_none_passes(url: str | None) -> None:
    summary = run_pytest("qdrant", "--tb=no", "-r", "", url=url).strip().splitlines()[-1]
    outcomes = {word: int(count) for count, word in re.findall(r"(\d+) ([a-z]+)", summary)}
    assert outcomes.keys() == {"errors", "deselected"}
    assert outcomes["errors"] >= AT_LEAST


def test_every_test_on_the_embedded_store_also_runs_on_a_server_with_the_mark() -> None:
    on_server = re.findall(r"^.*\[server.*$", run_pytest("qdrant", "--collect-only"), re.MULTILINE)
    others = run_pytest("not qdrant", "--collect-only")
    on_edge = re.findall(r"^.*\[edge.*$", others, re.MULTILINE)
    assert len(on_server) >= AT_LEAST
    assert on_server == [name.replace("[edge", "[server") for name in on_edge]
    assert "[server" not in others


def test_no_server_test_passes_without_an_address() -> None:
    check_that_none_passes(None)


def test_no_server_test_passes_with_a_closed_port() -> None:
    check_that_none_passes(f"http://127.0.0.1:{find_closed_port()}")


def test_no_server_test_passes_with_a_server_that_is_not_qdrant() -> None:
    with serve([Reply(404, b"not here")]) as server:
        check_that_none_passes(server.url)
