"""Tests of a signal that arrives while the command is still importing its modules."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

_INTERRUPTED_IMPORT = """
import signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            signal.raise_signal(signal.{signal})

sys.meta_path.insert(0, Interrupting())
sys.argv = ["rag-pipeline", "stats", *{arguments}]
from rag_pipeline.cli import main
main()
"""


@pytest.mark.parametrize("signal", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("arguments", [[], ["--json"]], ids=["text", "json"])
def test_a_signal_during_imports_ends_the_command_in_one_line(
    signal: str, arguments: list[str]
) -> None:
    script = _INTERRUPTED_IMPORT.format(signal=signal, arguments=arguments)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == 130
    assert done.stderr == b"rag-pipeline: stopped\n"
    if arguments:
        assert json.loads(done.stdout)["error"]["code"] == "INTERRUPTED"
    else:
        assert done.stdout == b""
