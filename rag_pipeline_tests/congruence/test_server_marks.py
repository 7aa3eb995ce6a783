"""Tests with the mark `qdrant` never pass without a Qdrant server."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rag_pipeline_tests.loopback import Reply, find_closed_port, serve

FOLDER = Path(__file__).parent
AT_LEAST = 50  # lowest expected number of tests with the mark
RUNS = """
import contextlib, io, json, os, sys
import pytest

printed = {}
for name, (url, *options) in json.loads(sys.argv[1]).items():
    os.environ["QDRANT_URL"] = url
    with contextlib.redirect_stdout(io.StringIO()) as printed[name]:
        pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *options, sys.argv[2]])
print(json.dumps({name: text.getvalue() for name, text in printed.items()}))
"""
"""Runs the tests of a folder several times, with other options and addresses of a server.

One process saves the time for imports.
"""


@pytest.fixture(scope="module")
def printed() -> dict[str, str]:
    """What pytest prints in several runs of the tests of this folder."""
    passing = ["-m", "qdrant", "--tb=no", "-r", ""]
    with serve([Reply(404, b"not here")]) as server:
        runs = {
            "marked": ["", "-m", "qdrant", "--collect-only"],
            "others": ["", "-m", "not qdrant", "--collect-only"],
            "no address": ["", *passing],
            "closed port": [f"http://127.0.0.1:{find_closed_port()}", *passing],
            "not Qdrant": [server.url, *passing],
        }
        command = [sys.executable, "-c", RUNS, json.dumps(runs), str(FOLDER)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not done.stderr
    return dict(json.loads(done.stdout))


def test_every_test_on_the_embedded_store_also_runs_on_a_server_with_the_mark(
    printed: dict[str, str],
) -> None:
    on_server = re.findall(r"^.*\[server.*$", printed["marked"], re.MULTILINE)
    on_edge = re.findall(r"^.*\[edge.*$", printed["others"], re.MULTILINE)
    assert len(on_server) >= AT_LEAST
    assert on_server == [name.replace("[edge", "[server") for name in on_edge]
    assert "[server" not in printed["others"]


@pytest.mark.parametrize("server", ["no address", "closed port", "not Qdrant"])
def test_no_server_test_passes_without_a_server(printed: dict[str, str], server: str) -> None:
    summary = printed[server].strip().splitlines()[-1]
    outcomes = {word: int(count) for count, word in re.findall(r"(\d+) ([a-z]+)", summary)}
    assert outcomes.keys() == {"errors", "deselected"}
    assert outcomes["errors"] >= AT_LEAST
