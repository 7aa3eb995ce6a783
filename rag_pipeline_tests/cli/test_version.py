"""Tests of `rag-pipeline --version`."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

from rag_pipeline_tests.architecture.test_import_weight import HEAVY

SHOW_VERSION = """
import sys
from rag_pipeline import cli

try:
    cli.main()
finally:
    print(*{name.split(".")[0] for name in sys.modules}, file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", [["--version"], ["--version", "no-such-command"]])
def test_the_version_is_printed_without_loading_heavy_packages(arguments: list[str]) -> None:
    command = [sys.executable, "-c", SHOW_VERSION, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"rag-pipeline {version('rag-pipeline')}\n"
    assert not set(done.stderr.split()) & (HEAVY - {"pydantic"})  # pydantic reads the settings
