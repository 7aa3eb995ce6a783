"""The commands and snippets of the documentation's guides do what the pages say."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
import typer.main

from rag_pipeline.cli.app import app
from rag_pipeline_tests.architecture.guides import DOCS, GuideBook, make_guide_book, read_blocks

if TYPE_CHECKING:
    from pathlib import Path

MAKE = shutil.which("make") or ""
GUIDES = [
    "install.md",
    "quickstart.md",
    "concepts.md",
    "troubleshooting.md",
    *sorted(path.relative_to(DOCS).as_posix() for path in (DOCS / "how-to").glob("*.md")),
]
DRIVER = """
import sys
for source in sys.argv[1:]:
    exec(compile(source, "snippet", "exec"), {"__name__": "__main__"})
"""


def list_commands() -> list[str]:
    """Return each `rag-pipeline` and `make` command in the shell blocks of the guides."""
    found = {
        command
        for page in GUIDES
        for block in read_blocks(page)
        if block.language == "bash"
        for command in block.commands
        if command.startswith(("rag-pipeline ", "make "))
    }
    return sorted(found - {"rag-pipeline --help"})


def mask_numbers(text: str) -> list[str]:
    """Return the lines of a text without the numbers that differ between runs."""
    return [re.sub(r"\d+(\.\d+)?", "#", line).strip() for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("command", list_commands())
def test_each_command_of_the_guides_exists_and_parses(command: str) -> None:
    program, name, *arguments = shlex.split(command)
    if program == "make":
        subprocess.run([MAKE, "-n", name], cwd=DOCS.parent, check=True, capture_output=True)
    else:
        group = typer.main.get_command(app)
        group.commands[name].make_context(name, arguments)  # type: ignore[attr-defined]  # a group, by several commands


def test_the_quick_start_prints_what_it_shows(tmp_path: Path) -> None:
    book = make_guide_book(tmp_path)
    blocks = [block for block in read_blocks("quickstart.md") if block.language in ("bash", "text")]
    output = ""
    for block in blocks:
        if block.language == "text":
            shown = [line for line in mask_numbers(block.text) if not line.startswith("Ingested")]
            missing = [line for line in shown if line not in mask_numbers(output)]
            assert missing == [], f"section {block.heading}: not in the output:\n{output}"
            continue
        if block.heading.startswith("6."):
            page = tmp_path / "docs" / "sourdough.md"
            text = page.read_text(encoding="utf-8")
            assert "once a week" in text
            page.write_text(text.replace("once a week", "once every ten days"), encoding="utf-8")
        for command in block.commands:
            if command.startswith("rag-pipeline "):
                done = book.run(*shlex.split(command))
                assert done.returncode == 0, done.stderr
                output = done.stdout


def test_the_changed_page_of_the_quick_start_is_the_only_one_processed() -> None:
    shown = [block.text for block in read_blocks("quickstart.md") if block.heading.startswith("6.")]
    assert "1 processed, 1 unchanged" in shown[-1]


def test_each_snippet_for_a_backend_runs(guide_book: GuideBook) -> None:
    sources = [
        block.text for block in read_blocks("how-to/backend.md") if block.language == "python"
    ]
    done = guide_book.run("python", "-c", DRIVER, *sources)
    assert done.returncode == 0, done.stderr
    assert "https://example.org/docs/sourdough#feed-the-starter" in done.stdout
    assert "QUERY_EMPTY" in done.stdout


def test_the_evaluation_guide_prints_what_it_shows(guide_book: GuideBook) -> None:
    guide_book.write_files("how-to/evaluate.md")
    blocks = read_blocks("how-to/evaluate.md")
    # The other commands, such as accepting and sweeping, take longer and are tested elsewhere.
    command = next(block.commands[0] for block in blocks if block.language == "bash")
    done = guide_book.run(*shlex.split(command))
    assert done.returncode == 0, done.stderr
    shown = next(block.text for block in blocks if block.language == "text")
    assert set(mask_numbers(shown)) <= set(mask_numbers(done.stdout))
    assert (guide_book.folder / "report.html").is_file()


def test_a_selection_is_answered_as_the_concepts_page_shows(guide_book: GuideBook) -> None:
    blocks = [block for block in read_blocks("concepts.md") if block.language == "bash"]
    done = guide_book.run(*shlex.split(blocks[0].commands[0]))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "A wetter dough has larger holes and is harder to shape.\n\n  [1]"
    )
