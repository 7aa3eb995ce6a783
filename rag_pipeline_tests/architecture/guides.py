"""The book of the quick start, made from the page itself, and the command run in its folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from rag_pipeline.core.settings import Settings

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(
    r"^```(?P<language>\w+)(?: title=\"(?P<title>[^\"]*)\")?\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_SETTINGS = {name.upper() for name in Settings.model_fields}


@dataclass(frozen=True)
class CodeBlock:
    """A fenced block of a page.

    Attributes:
        title: The file that the block shows, or an empty text.
        heading: The nearest heading above it.
    """

    language: str
    title: str
    text: str
    heading: str

    @property
    def commands(self) -> list[str]:
        """The lines of a shell block, with continued lines joined."""
        lines = re.sub(r"\\\n\s*", "", self.text).splitlines()
        return [line.partition(" # ")[0].strip() for line in lines if line.strip()]


def read_blocks(page: str) -> list[CodeBlock]:
    """Return the fenced blocks of a page below docs/, in order."""
    text = (DOCS / page).read_text(encoding="utf-8")
    headings = [
        (match.start(), match[1]) for match in re.finditer(r"^#+ (.*)$", text, re.MULTILINE)
    ]
    return [
        CodeBlock(
            match["language"],
            match["title"] or "",
            match["text"],
            next((name for start, name in reversed(headings) if start < match.start()), ""),
        )
        for match in _BLOCK.finditer(text)
    ]


@dataclass(frozen=True)
class GuideBook:
    """A folder with the pages and the `.env` of the quick start."""

    folder: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run `rag-pipeline` or Python in the folder, without settings from outside."""
        kept = {name: value for name, value in os.environ.items() if name not in _SETTINGS}
        program, *arguments = command
        start = ["-m", "rag_pipeline.cli"] if program == "rag-pipeline" else ["-W", "error"]
        return subprocess.run(
            [sys.executable, *start, *arguments],
            cwd=self.folder,
            env=kept | {"NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

    def write_files(self, page: str) -> None:
        """Write each file that a page shows in a block with a title."""
        for block in read_blocks(page):
            if block.title:
                path = self.folder / block.title
                path.parent.mkdir(exist_ok=True)
                path.write_text(block.text, encoding="utf-8")


def make_guide_book(folder: Path) -> GuideBook:
    """Make the book of the quick start, not ingested."""
    book = GuideBook(folder)
    book.write_files("quickstart.md")
    return book
