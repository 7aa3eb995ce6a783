"""Case files: what each construct and each fault of an earlier implementation must become."""

from __future__ import annotations

import pytest

from rag_pipeline_tests.cases.case_files import CaseFile, describe, read_cases


@pytest.mark.parametrize("case", [*read_cases()], ids=lambda case: f"{case.file}: {case.title}")
def test_a_case_gives_the_expected_blocks_and_chunks(case: CaseFile) -> None:
    assert describe(case) == case.expected
