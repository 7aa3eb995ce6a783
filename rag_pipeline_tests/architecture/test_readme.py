"""What README.md says can be done: its commands exist, its Python runs, its links lead on."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer.main

from rag_pipeline.cli.app import app

if TYPE_CHECKING:
    from rag_pipeline_tests.architecture.guides import GuideBook

ROOT = Path(__file__).parents[2]
MAKE = shutil.which("make") or ""
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "deploy").rglob("*.md"),
]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def commands_named() -> list[str]:
    """Each `make ...` and `rag-pipeline ...` of the README, in code blocks and in tables."""
    shell = [
        line.partition(" # ")[0].strip() for text in blocks("bash") for line in text.split("\n")
    ]
    inline = re.findall(r"`((?:make|rag-pipeline) [^`]+)`", README)
    return sorted({line for line in (*shell, *inline) if line})


def test_it_is_read_in_one_sitting() -> None:
    assert len(README.splitlines()) <= 150


@pytest.mark.parametrize("command", commands_named())
def test_each_command_exists_and_parses(command: str) -> None:
    program, *arguments = shlex.split(command)
    if program == "make":
        subprocess.run([MAKE, "-n", *arguments], cwd=ROOT, check=True, capture_output=True)
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert re.search(rf"^{arguments[0]}:.*## ", makefile, re.MULTILINE)
    else:
        group = typer.main.get_command(app)
        subcommand = group.commands[arguments[0]]  # type: ignore[attr-defined]  # a group, by several commands
        subcommand.make_context(arguments[0], arguments[1:], resilient_parsing=False)


@pytest.mark.parametrize("source", blocks("python"))
def test_each_python_block_runs(source: str, guide_book: GuideBook) -> None:
    result = guide_book.run("python", "-c", source)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip()


def test_each_option_named_is_one_of_the_commands() -> None:
    group = typer.main.get_command(app)
    subcommands = group.commands.values()  # type: ignore[attr-defined]  # the same
    known = {option for command in subcommands for item in command.params for option in item.opts}
    assert set(re.findall(r"`(--[a-z-]+)`", README)) <= known


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_link_leads_to_a_file(path: Path) -> None:
    prose = re.sub(r"```.*?```|`[^`]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", prose)
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (path.parent / link).exists()] == []
