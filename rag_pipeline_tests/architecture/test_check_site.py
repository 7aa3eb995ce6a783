"""The check of the built documentation site finds what Zensical's strict mode does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "check_site.py"
PAGE = '<h1 id="top">Title</h1><a href="#top">up</a><a href="other.html#there">on</a>{}'


def check(folder: Path, extra: str = "") -> subprocess.CompletedProcess[str]:
    """Run the script on a site of two pages; `extra` is added to the first."""
    (folder / "index.html").write_text(PAGE.format(extra), encoding="utf-8")
    (folder / "other.html").write_text('<h2 id="there">There</h2>', encoding="utf-8")
    command = [sys.executable, str(SCRIPT), str(folder)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_a_whole_site_passes(tmp_path: Path) -> None:
    assert check(tmp_path, '<a href="https://example.org/">out</a>').returncode == 0


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        ('<a href="gone.html">x</a>', "gone.html is no file"),
        ('<a href="../outside.md">x</a>', "../outside.md is no file"),
        ('<a href="other.html#nowhere">x</a>', "missing anchor"),
        ('<img src="gone.png">', "gone.png is no file"),
        ('<script src="https://cdn.example.org/x.js"></script>', "from another host"),
        ('<link rel="stylesheet" href="https://cdn.example.org/x.css">', "from another host"),
    ],
)
def test_a_broken_site_is_named(extra: str, problem: str, tmp_path: Path) -> None:
    done = check(tmp_path, extra)
    assert done.returncode == 1
    assert problem in done.stderr
