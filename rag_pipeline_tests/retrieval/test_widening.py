"""Chunks of one section that are joined into one text, with their blocks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_pipeline.core.models import TextBlock, TextBlockKind
from rag_pipeline.ingestion.markdown.blocks import find_text_blocks
from rag_pipeline.retrieval.hits import join_pieces
from rag_pipeline_tests.answering.factories import make_chunk
from rag_pipeline_tests.growth import assert_linear

FENCE = "```py\nx = 1\n```"


def join(source: str, *cuts: tuple[int, int]) -> tuple[str, list[tuple[str, str]]]:
    """Make chunks of the given spans of an ASCII source, join them, and return text and blocks."""
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


def test_the_blocks_of_a_neighbour_get_offsets_in_the_joined_text() -> None:
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


def test_a_block_cut_between_chunks_reaches_from_its_first_to_its_last_line() -> None:
    source = "It walks.\nIt runs.\nIt falls."
    chunks = [
        ("It walks.\nIt runs.", TextBlock(TextBlockKind.PARAGRAPH, 0, 18, 5, 6)),
        ("It runs.\nIt falls.", TextBlock(TextBlockKind.PARAGRAPH, 0, 18, 6, 7)),
    ]
    pieces = []
    for text, block in chunks:
        at = source.index(text)
        place = replace(make_chunk().metadata, start_byte=at, end_byte=at + len(text))
        pieces.append((replace(place, blocks=(block,)), text))
    assert join_pieces(pieces) == (source, (TextBlock(TextBlockKind.PARAGRAPH, 0, 28, 5, 7),))


def test_the_time_to_join_grows_in_proportion_to_the_chunks() -> None:
    text = "- Two\n- Three\n- Four\n- Five"
    chunk = replace(make_chunk().metadata, end_byte=0, blocks=find_text_blocks(text))
    assert_linear(lambda count: join_pieces([(chunk, text)] * count), 1_000)
