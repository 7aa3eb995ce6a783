"""The blocks of a reader's or a model's text: case files, and promises about any text."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_pipeline.ingestion.markdown.text_blocks import find_text_blocks
from rag_pipeline_tests.cases.case_files import (
    CASES_DIR,
    CaseFile,
    describe_text_blocks,
    read_cases,
)
from rag_pipeline_tests.markdown_strategies import DOCUMENTS
from rag_pipeline_tests.properties.text_blocks import check_text_blocks

_CASES = [*read_cases(CASES_DIR / "text_blocks")]
_ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=[]))


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.title)
def test_a_case_gives_the_expected_text_blocks(case: CaseFile) -> None:
    found = describe_text_blocks(case.source, find_text_blocks(case.source))
    assert "\n".join(found) == case.expected


@given(st.one_of(DOCUMENTS, _ANY_TEXT))
@example("[r]: <\ud800>\n\n[\ud800]\0")
@example("a\r\n\r\n- b\r- c\r\n")
def test_the_blocks_of_any_text_keep_their_promises(text: str) -> None:
    check_text_blocks(text, find_text_blocks(text))


@given(DOCUMENTS)
def test_line_ends_of_windows_change_no_block(text: str) -> None:
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    windows = plain.replace("\n", "\r\n")
    assert [
        (block.kind, windows[block.start : block.end].replace("\r\n", "\n"))
        for block in find_text_blocks(windows)
    ] == [(block.kind, plain[block.start : block.end]) for block in find_text_blocks(plain)]


@pytest.mark.parametrize(
    "mark",
    ["- a\n", "> ", "- ", "<a b={", "$$\n", ":::note\n", "```\n", "[a](", "| a ", "1. x\n\n"],
)
def test_marks_without_end_cost_linear_time(mark: str) -> None:
    start = time.process_time()
    find_text_blocks(mark * (50_000 // len(mark)))
    assert time.process_time() - start < 10
