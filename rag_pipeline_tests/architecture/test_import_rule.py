"""Who may import whom is checked, and the check can fail."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run_lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package without its data, with its import rule."""
    ignored = shutil.ignore_patterns("data", "__pycache__")
    shutil.copytree(ROOT / "rag_pipeline", tmp_path / "rag_pipeline", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_import_rule_is_kept() -> None:
    result = run_lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "7 kept, 0 broken" in result.stdout


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("core/ids.py", "import rag_pipeline.ingestion.chunking"),
        ("retrieval/ranking.py", "import rag_pipeline.ingestion.chunking"),
        ("evaluation/metrics.py", "import dagster"),
        ("answering/models.py", "import fastapi"),
        ("retrieval/models.py", "import sqlalchemy"),
        ("retrieval/selected_text.py", "import rag_pipeline.adapters.local_files"),
        ("orchestration/instance.py", "import qdrant_client"),
    ],
)
def test_a_forbidden_import_breaks_it(copy: Path, module: str, line: str) -> None:
    path = copy / "rag_pipeline" / module
    path.write_text(f"{path.read_text(encoding='utf-8')}\n{line}\n", encoding="utf-8")
    result = run_lint_imports(copy)
    assert result.returncode == 1, result.stdout + result.stderr
    assert line.removeprefix("import ") in result.stdout


def test_a_circle_between_modules_breaks_it(copy: Path) -> None:
    path = copy / "rag_pipeline" / "ingestion" / "planning.py"
    line = "import rag_pipeline.ingestion.run"
    path.write_text(f"{path.read_text(encoding='utf-8')}\n{line}\n", encoding="utf-8")
    result = run_lint_imports(copy)
    assert result.returncode == 1, result.stdout + result.stderr
    assert ".planning -> .run" in result.stdout
