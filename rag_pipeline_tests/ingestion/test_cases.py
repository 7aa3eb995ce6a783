"""Tests of the case files: Markdown sources with the blocks and chunks that they must give."""

from __future__ import annotations

import pytest

from rag_pipeline_tests.cases.case_files import (
    CASES_DIR,
    CaseFile,
    chunk_case,
    describe,
    describe_text_blocks,
    read_cases,
)


@pytest.mark.parametrize("case", [*read_cases()], ids=lambda case: f"{case.file}: {case.title}")
def test_a_case_gives_the_expected_blocks_and_chunks(case: CaseFile) -> None:
    assert describe(case) == case.expected


@pytest.mark.parametrize(
    "case", [*read_cases(CASES_DIR / "chunk_blocks")], ids=lambda case: case.title
)
def test_a_case_gives_chunks_with_the_expected_blocks(case: CaseFile) -> None:
    lines: list[str] = []
    for chunk in chunk_case(case)[1]:
        lines += ["chunk", *describe_text_blocks(chunk.text, chunk.blocks)]
    assert "\n".join(lines) == case.expected
