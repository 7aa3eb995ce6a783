"""Chunks of one section joined again, with their blocks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_pipeline.ingestion.markdown.text_blocks import find_text_blocks
from rag_pipeline.retrieval.hits import join_pieces
from rag_pipeline_tests.answering.factories import make_chunk

FENCE = "```py\nx = 1\n```"


def join(source: str, *cuts: tuple[int, int]) -> tuple[str, list[tuple[str, str]]]:
    """Cut spans out of an ASCII source, as chunks with their blocks, and join them."""
    pieces = []
    for start, end in cuts:
        text = source[start:end].strip()
        at = source.index(text, start)
        metadata = replace(
            make_chunk().metadata,
            start_byte=at,
            end_byte=at + len(text),
            blocks=find_text_blocks(text),
        )
        pieces.append((metadata, text))
    joined, blocks = join_pieces(pieces)
    return joined, [(block.kind.value, joined[block.start : block.end]) for block in blocks]


def test_the_blocks_of_a_neighbour_are_moved_to_their_place() -> None:
    source = f"One robot walks.\n\n{FENCE}\n\n- Two\n- Three"
    cut = source.index("- Two")
    joined, blocks = join(source, (0, cut), (cut, len(source)))
    assert joined == source
    assert blocks == [
        ("paragraph", "One robot walks."),
        ("code", FENCE),
        ("list", "- Two\n- Three"),
        ("list_item", "- Two"),
        ("list_item", "- Three"),
    ]


def test_a_paragraph_cut_between_overlapping_chunks_is_whole_again() -> None:
    source = "It walks. It runs. It falls. It stands."
    middle, overlap = source.index("It falls"), source.index("It runs")
    joined, blocks = join(source, (0, middle), (overlap, len(source)))
    assert joined == source
    assert blocks == [("paragraph", source)]


@pytest.mark.parametrize("end", ["- Three", "- Three\n- Four\n\nThe end."])
def test_a_list_cut_between_overlapping_chunks_is_whole_again(end: str) -> None:
    source = f"- One\n- Two\n{end}"
    middle, overlap = source.index("- Three"), source.index("- Two")
    joined, blocks = join(source, (0, middle), (overlap, len(source)))
    assert joined == source
    assert blocks == [
        (block.kind.value, source[block.start : block.end]) for block in find_text_blocks(source)
    ]
