"""Tests of the numbered sources that are built from retrieved chunks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rag_pipeline.answering.prompts import build_sources
from rag_pipeline.ingestion.markdown.blocks import find_text_blocks
from rag_pipeline_tests.answering.factories import SENSING, WALKING, make_chunk

if TYPE_CHECKING:
    from rag_pipeline.retrieval.models import ScoredChunk

PAGE = "Pick a gait.\n\n- Walk\n- Trot\n- Gallop\n\nThen stop. Sit down."


def cut(index: int, start: int, end: int, section: str = "Gaits") -> ScoredChunk:
    """Return the chunk with the given index and span of the page."""
    text = PAGE[start:end]
    chunk = make_chunk(text, section=section)
    data = replace(
        chunk.metadata,
        chunk_index=index,
        start_byte=start,
        end_byte=end,
        blocks=find_text_blocks(text),
    )
    return replace(chunk, metadata=data)


def test_chunks_of_one_section_are_one_source_in_the_order_of_the_page() -> None:
    middle, overlap = PAGE.index("- Gallop"), PAGE.index("- Trot")
    second, first = cut(1, overlap, len(PAGE)), cut(0, 0, middle - 1)
    sources = build_sources([second, make_chunk(SENSING, section="IMU"), first], None)
    assert [(source.number, source.text) for source in sources] == [(1, PAGE), (2, SENSING)]
    assert sources[0].chunk_id == second.chunk_id
    assert [PAGE[block.start : block.end] for block in sources[0].blocks] == [
        PAGE[block.start : block.end] for block in find_text_blocks(PAGE)
    ]


def test_a_blank_line_stands_between_chunks_that_are_not_neighbours() -> None:
    first, last = cut(0, 0, len("Pick a gait.")), cut(3, PAGE.index("Sit"), len(PAGE))
    (source,) = build_sources([last, first], None)
    assert source.text == "Pick a gait.\n\nSit down."
    assert [source.text[block.start : block.end] for block in source.blocks] == [
        "Pick a gait.",
        "Sit down.",
    ]


def test_equal_headings_of_two_documents_are_two_sources() -> None:
    one = make_chunk(WALKING)
    other = make_chunk(SENSING)
    other = replace(other, metadata=replace(other.metadata, doc_path="module-2/page.md"))
    assert [source.doc_path for source in build_sources([one, other], None)] == [
        one.metadata.doc_path,
        "module-2/page.md",
    ]


def test_a_chunk_that_does_not_fit_hides_no_chunk_after_it() -> None:
    table = make_chunk(f"{WALKING} " * 20, section="A long table")
    chunks = [make_chunk(f"{WALKING} {n}", section=f"Section {n}") for n in range(3)]
    each = chunks[0].metadata.token_count
    ranked = [chunks[0], table, *chunks[1:]]
    found = build_sources(ranked, 3 * each + 3)
    assert [source.text for source in found] == [chunk.text for chunk in chunks]
    assert [source.number for source in found] == [1, 2, 3]


def test_a_widened_chunk_that_a_better_source_contains_is_left_out() -> None:
    first, second = cut(0, 0, 12), cut(1, 14, 25)
    wide = [replace(chunk, expanded_text=PAGE[:25]) for chunk in (first, second)]
    alone = replace(cut(2, PAGE.index("Then"), len(PAGE)), expanded_text="Then stop. Sit down.")
    sources = build_sources([*wide, alone], None)
    assert [source.text for source in sources] == [PAGE[:25], "Then stop. Sit down."]
