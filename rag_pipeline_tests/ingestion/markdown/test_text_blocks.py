"""Tests of the blocks that are found in a text: case files, and properties of any text."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_pipeline.ingestion.markdown.blocks import find_text_blocks
from rag_pipeline_tests.cases.case_files import (
    CASES_DIR,
    CaseFile,
    describe_text_blocks,
    read_cases,
)
from rag_pipeline_tests.growth import assert_linear
from rag_pipeline_tests.markdown_strategies import DOCUMENTS
from rag_pipeline_tests.properties.text_blocks import check_text_blocks

_CASES = [*read_cases(CASES_DIR / "text_blocks")]
_ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=[]))


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.title)
def test_a_case_gives_the_expected_text_blocks(case: CaseFile) -> None:
    found = describe_text_blocks(case.source, find_text_blocks(case.source))
    assert "\n".join(found) == case.expected


@pytest.mark.slow
@given(st.one_of(DOCUMENTS, _ANY_TEXT))
@example("[r]: <\ud800>\n\n[\ud800]\0")
@example("a\r\n\r\n- b\r- c\r\n")
def test_the_blocks_of_any_text_are_ordered_nested_and_complete(text: str) -> None:
    check_text_blocks(text, find_text_blocks(text))


@pytest.mark.slow
@given(DOCUMENTS)
def test_windows_line_ends_do_not_change_the_blocks(text: str) -> None:
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    windows = plain.replace("\n", "\r\n")
    assert [
        (block.kind, windows[block.start : block.end].replace("\r\n", "\n"))
        for block in find_text_blocks(windows)
    ] == [(block.kind, plain[block.start : block.end]) for block in find_text_blocks(plain)]


@pytest.mark.no_cover  # tracing would add to the measured time
@pytest.mark.slow
@pytest.mark.parametrize(
    "mark",
    ["- a\n", "> ", "- ", "<a b={", "$$\n", ":::note\n", "```\n", "[a](", "| a ", "1. x\n\n"],
)
def test_repeated_marks_take_linear_time(mark: str) -> None:
    assert_linear(lambda size: find_text_blocks(mark * (size // len(mark))), 10_000)
