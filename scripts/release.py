"""Build the release of the version in pyproject.toml, and test the built wheel.

`make release` runs this. It writes the sdist, the wheel and RELEASE_NOTES.md to dist/. It publishes
nothing and creates no tag: docs/contributing/release.md lists the steps of a release.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
TOOLS = ("build==1.6.1", "twine==7.0.0")
PAGE = """---
title: Balance
---

# Balance

## The support polygon

A robot keeps its balance as long as its centre of mass lies above the support polygon, the area
between its feet. When the centre of mass leaves the support polygon, the robot must take a step.
"""
CONFIG = "export default {url: 'https://e.org', baseUrl: '/', presets: [['classic', {}]]};"
QUESTION = "How does a robot keep its balance?"


def main() -> None:
    """Build, check and test the release, and write its notes.

    Raises:
        SystemExit: CHANGELOG.md has no entry for the version, or a step failed.
    """
    version = read_version()
    notes = extract_notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder))
        check_wheel(wheel, version, Path(folder))
    (DIST / "RELEASE_NOTES.md").write_text(notes, encoding="utf-8")
    print(f"dist/ has the release {version}:", *sorted(path.name for path in DIST.iterdir()))


def read_version() -> str:
    """Return the version from pyproject.toml, the only file that states it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return str(project["project"]["version"])


def extract_notes(changelog: str, version: str) -> str:
    """Return the text of the version's section in CHANGELOG.md, without its heading.

    Raises:
        SystemExit: The section is missing or empty.
    """
    heading = rf"^## \[{re.escape(version)}\][^\n]*\n"
    section = re.search(rf"{heading}(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if section is None or not section[1].strip():
        sys.exit(
            f"release: CHANGELOG.md has no section '## [{version}]', or it is empty. "
            "Describe the release there, or correct the version in pyproject.toml."
        )
    return section[1].strip() + "\n"


def build(folder: Path) -> Path:
    """Build sdist and wheel into dist/ and check their metadata; return the wheel's path."""
    python = create_environment(folder / "tools", *TOOLS)
    run(python, "-m", "build", "--outdir", DIST, ROOT)
    run(python, "-m", "twine", "check", "--strict", *DIST.iterdir())
    return next(DIST.glob("*.whl"))


def check_wheel(wheel: Path, version: str, folder: Path) -> None:
    """Install the wheel into a new environment, then ingest a page and ask about it.

    First the library is imported without the pipeline's dependencies. Then pip installs
    requirements.lock, as on a machine without make and uv.

    Raises:
        SystemExit: A step failed, or the answer does not cite the page.
    """
    constraints = folder / "constraints.txt"
    constraints.write_text(read_locked_versions(), encoding="utf-8")
    python = create_environment(folder / "wheel", "-c", constraints, wheel)
    script = "import rag_pipeline.retrieval, rag_pipeline.answering, importlib.metadata as m; "
    found = run(python, "-c", script + "print(m.version('rag-pipeline'))", cwd=folder).strip()
    if found != version:
        sys.exit(f"release: the wheel has the version {found}, not {version}.")
    run(python, "-m", "pip", "install", "-q", "--require-hashes", "-r", ROOT / "requirements.lock")
    (folder / "docs").mkdir()
    (folder / "docs" / "balance.md").write_text(PAGE, encoding="utf-8")
    (folder / "docusaurus.config.js").write_text(CONFIG, encoding="utf-8")
    command = python.parent / "rag-pipeline"
    run(command, "ingest", cwd=folder)
    answer = json.loads(run(command, "query", "--json", "--", QUESTION, cwd=folder))
    if "balance" not in json.dumps(answer["citations"]):
        sys.exit(f"release: the answer does not cite the page:\n{json.dumps(answer, indent=1)}")


def read_locked_versions() -> str:
    """Return the lock as pip constraints: no hashes and no extras, one package per line."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    lines = [line.removesuffix(" \\") for line in lock.splitlines() if not line.startswith(" ")]
    return "\n".join(re.sub(r"\[[\w,-]+\]", "", line) for line in lines) + "\n"


def create_environment(folder: Path, *requirements: str | Path) -> Path:
    """Create a virtual environment, install requirements into it and return its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    uv = Path(sys.executable).with_name("uv")
    run(uv, "pip", "install", "-q", "--python", python, *requirements)
    return python


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run a command without this project's settings and return its standard output.

    Raises:
        SystemExit: The command failed. Its output was printed.
    """
    print("release:", *(Path(part).name for part in command[:4]), flush=True)
    settings = (ROOT / ".env.example").read_text(encoding="utf-8")
    names = set(re.findall(r"^([A-Z0-9_]+)=", settings, re.MULTILINE))
    kept = {name: value for name, value in os.environ.items() if name not in names}
    environment = kept | {"DOCS_DIR": str(cwd / "docs"), "DATA_DIR": str(cwd / "data")}
    result = subprocess.run(  # this script's own commands
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        sys.exit(f"{result.stdout}{result.stderr}release: the step failed.")
    return result.stdout


if __name__ == "__main__":
    main()
