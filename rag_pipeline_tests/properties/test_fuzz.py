"""Fuzzing of parsing and chunking with the script benchmarks/fuzz_parsing.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_DOCS_DIR = _ROOT / "rag_pipeline_tests" / "fixtures" / "docusaurus-edge-docs"


@pytest.mark.parametrize(
    "inputs",
    [
        pytest.param(300, id="few"),
        pytest.param(100_000, id="many", marks=[pytest.mark.nightly, pytest.mark.timeout(7200)]),
    ],
)
def test_no_input_makes_parsing_or_chunking_crash_or_hang(inputs: int, tmp_path: Path) -> None:
    script = _ROOT / "benchmarks" / "fuzz_parsing.py"
    command = [sys.executable, str(script), "--inputs", str(inputs), "--docs-dir", str(_DOCS_DIR)]
    run = subprocess.run(
        command,
        cwd=tmp_path,
        env={"PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "none raised" in run.stdout
