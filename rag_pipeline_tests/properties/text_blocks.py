"""The promises that the blocks of every text keep, as one check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_pipeline.core.models import TextBlockKind
from rag_pipeline_tests.cases.case_files import CONTAINER_KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.models import TextBlock


def check_text_blocks(text: str, blocks: Sequence[TextBlock]) -> None:
    """Check that blocks are whole lines, nest, stand in order and cover the text."""
    around: list[TextBlock] = []
    covered = 0
    for block in blocks:
        assert 0 <= block.start < block.end <= len(text)
        assert block.start == 0 or text[block.start - 1] in "\r\n"
        assert block.end == len(text) or text[block.end] in "\r\n"
        while around and around[-1].end <= block.start:
            around.pop()
        if around:
            assert around[-1].kind in CONTAINER_KINDS
            assert around[-1].start <= block.start
            assert block.end <= around[-1].end
        else:
            assert not text[covered : block.start].strip()
            covered = block.end
        is_item = block.kind is TextBlockKind.LIST_ITEM
        assert is_item == (bool(around) and around[-1].kind is TextBlockKind.LIST)
        around.append(block)
    assert not text[covered:].strip()
