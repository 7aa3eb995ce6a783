"""Tests of the patterns that choose the files which become pages.

The expected pages in page_patterns.json are those that `Globby` of Docusaurus 3.10.2 found in
a folder with these files, without names that begin with a dot.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from rag_pipeline.core.site.addresses import PagePatterns

_RECORD: Final = json.loads(
    (Path(__file__).parent / "page_patterns.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize(
    "case", _RECORD["cases"], ids=[f"{one['include']} {one['exclude']}" for one in _RECORD["cases"]]
)
def test_the_pages_are_those_of_docusaurus(case: dict[str, Any]) -> None:
    patterns = PagePatterns(case["include"], case["exclude"])
    found = []
    for file in _RECORD["files"]:
        *folders, _ = file.split("/")
        if all(map(patterns.reads_folder, folders)) and patterns.builds(file):
            found.append(file)
    assert found == case["pages"]


def test_without_patterns_the_default_ones_decide() -> None:
    own, default = PagePatterns(("**/*.{md,mdx}",)), PagePatterns()
    for file in _RECORD["files"]:
        folders = file.split("/")[:-1]
        found = [all(map(one.reads_folder, folders)) and one.builds(file) for one in (own, default)]
        assert found[0] == found[1], file


@pytest.mark.parametrize("pattern", ["{1..5000}.md", "{a..z}{a..z}{a..z}.md", "{1..100000000}.md"])
def test_a_pattern_with_too_many_alternatives_is_an_error(pattern: str) -> None:
    for include, exclude in ((pattern,), None), (None, (pattern,)):
        with pytest.raises(ValueError, match="more than 1,000 alternatives"):
            PagePatterns(include, exclude)
