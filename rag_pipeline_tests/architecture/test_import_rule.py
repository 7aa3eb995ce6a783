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


# For each contract, an import that it forbids; and an import that makes a circle in a folder.
FORBIDDEN = {
    "core/ids.py": "import rag_pipeline.ingestion.chunking",
    "retrieval/ranking.py": "import rag_pipeline.ingestion.chunking",
    "evaluation/metrics.py": "import dagster",
    "answering/models.py": "import fastapi",
    "retrieval/models.py": "import sqlalchemy",
    "retrieval/selected_text.py": "import rag_pipeline.adapters.local_files",
    "orchestration/instance.py": "import qdrant_client",
    "ingestion/planning.py": "import rag_pipeline.ingestion.run",
}


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the check prints about a copy of the package with all of these imports."""
    copy = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("data", "__pycache__")
    shutil.copytree(ROOT / "rag_pipeline", copy / "rag_pipeline", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", copy)
    for module, line in FORBIDDEN.items():
        path = copy / "rag_pipeline" / module
        path.write_text(f"{path.read_text(encoding='utf-8')}\n{line}\n", encoding="utf-8")
    result = run_lint_imports(copy)
    assert result.returncode == 1, result.stdout + result.stderr
    return result.stdout


def test_each_contract_can_be_broken(broken: str) -> None:
    assert "0 kept, 7 broken" in broken


@pytest.mark.parametrize("module", FORBIDDEN)
def test_a_forbidden_import_is_named(broken: str, module: str) -> None:
    importer = module.removesuffix(".py").replace("/", ".")
    imported = FORBIDDEN[module].removeprefix("import ")
    words = " ".join(broken.split())
    if module == "ingestion/planning.py":
        assert ".planning -> .run" in words
    else:
        assert f"rag_pipeline.{importer} -> {imported} " in words
