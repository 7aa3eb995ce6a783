"""One check for the properties that the blocks of every text must have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_pipeline.core.models import TextBlockKind
from rag_pipeline_tests.cases.case_files import CONTAINER_KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.models import TextBlock


def check_text_blocks(text: str, blocks: Sequence[TextBlock]) -> None:
    """Assert that the blocks are whole lines, are nested and ordered, and cover the text.

    List items must be directly inside lists, and everything directly inside a list is a list item.
    """
    around: list[TextBlock] = []
    covered = 0
    for block in blocks:
        assert 0 <= block.start < block.end <= len(text)
        assert 1 <= block.start_line <= block.end_line
        assert block.start == 0 or text[block.start - 1] in "\r\n"
        assert block.end == len(text) or text[block.end] in "\r\n"
        while around and around[-1].end <= block.start:
            around.pop()
        if around:
            assert around[-1].kind in CONTAINER_KINDS
            assert around[-1].start <= block.start
            assert block.end <= around[-1].end
            assert around[-1].start_line <= block.start_line
            assert block.end_line <= around[-1].end_line
        else:
            assert not text[covered : block.start].strip()
            covered = block.end
        is_item = block.kind is TextBlockKind.LIST_ITEM
        assert is_item == (bool(around) and around[-1].kind is TextBlockKind.LIST)
        around.append(block)
    assert not text[covered:].strip()
