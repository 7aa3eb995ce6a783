"""Properties of the blocks and chunks of any Markdown. Every check runs on every document."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from rag_pipeline.core.errors import FrontMatterError
from rag_pipeline.core.ids import DocId, make_chunk_id
from rag_pipeline.core.models import (
    Block,
    Chunk,
    ChunkLimits,
    DiscoveredDoc,
    MarkdownFormat,
    ParsedDoc,
    SiteSettings,
    TextBlockKind,
)
from rag_pipeline.core.text.terms import count_tokens
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.markdown.blocks import cut_text, read_span
from rag_pipeline.ingestion.markdown.source import count_bytes
from rag_pipeline.ingestion.parsing import parse_doc
from rag_pipeline_tests.markdown_strategies import DOCUMENTS
from rag_pipeline_tests.properties.text_blocks import check_text_blocks

_ATOMIC = {"code", "table", "math"}
_LIMITS = st.sampled_from([ChunkLimits(), ChunkLimits(20, 40, 60, 10), ChunkLimits(12, 24, 24, 0)])
_FORMATS = st.sampled_from([MarkdownFormat.MDX, MarkdownFormat.MD])


@dataclass(frozen=True)
class Case:
    """A parsed document with its chunks, and functions to read the source by byte offsets."""

    parsed: ParsedDoc
    limits: ChunkLimits
    chunks: tuple[Chunk, ...]

    def to_bytes(self, block: Block) -> tuple[int, int]:
        """Return the start and the end of a block in the UTF-8 bytes of the source."""
        byte_of = count_bytes(self.parsed.source, (block.start, block.end))
        return byte_of[block.start], byte_of[block.end]

    def to_char_offset(self, offset: int) -> int:
        return len(self.parsed.source.encode()[:offset].decode())

    def clean(self, block: Block) -> str:
        return cut_text(block, block.start, block.end)

    def clean_between(self, start: int, end: int) -> str:
        return read_span(self.parsed, self.to_char_offset(start), self.to_char_offset(end))


def parse(source: str, markdown_format: MarkdownFormat = MarkdownFormat.MDX) -> ParsedDoc:
    doc = DiscoveredDoc(DocId("module-1/intro/page.md"), Path("page.md"), "", 0, 0)
    return parse_doc(doc, SiteSettings(markdown_format=markdown_format), source.encode())


@given(DOCUMENTS, _LIMITS, _FORMATS)
@example("1. :::note T\n\n   :::note T\n\n   ## S", ChunkLimits(12, 24, 24, 0), MarkdownFormat.MDX)
def test_blocks_and_chunks_of_any_document_pass_all_checks(
    source: str, limits: ChunkLimits, markdown_format: MarkdownFormat
) -> None:
    check_all(source, limits, markdown_format)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("word " * 3000, id="no sentence ends"),
        pytest.param("A word. " * 3000, id="many sentences"),
        pytest.param("a" * 9000, id="one word"),
        pytest.param("\u7dda" * 5000, id="no spaces"),
        pytest.param(":::note " + "word " * 1000, id="long title"),
        pytest.param('<X title="' + "word " * 1000 + '" />', id="long attribute"),
        pytest.param("`" + "word " * 3000 + "`", id="long code span"),
        pytest.param("[" + "word " * 3000 + "](a.md)", id="long link"),
        pytest.param("![a](data:x," + "b" * 9000 + ") A word." * 500, id="long destination"),
        pytest.param("## A\n\n" + "| a | b |\n|-|-|\n" + "| c | d |\n" * 900, id="long table"),
        pytest.param("Intro:\n\n```py\n" + "x = 1\n" * 900 + "```\n\nEnd.", id="long fence"),
    ],
)
def test_blocks_and_chunks_of_very_long_parts_pass_all_checks(source: str) -> None:
    check_all(source, ChunkLimits(), MarkdownFormat.MDX)


def check_all(source: str, limits: ChunkLimits, markdown_format: MarkdownFormat) -> None:
    parsed = parse(source, markdown_format)
    case = Case(parsed, limits, chunk_doc(parsed, limits))
    every_line_is_in_one_block(case)
    no_chunk_crosses_a_heading(case)
    code_tables_and_math_are_never_cut(case)
    spans_are_in_order_and_cover_the_content_once(case)
    cleaning_the_span_gives_the_text(case)
    only_a_single_atomic_block_exceeds_the_maximum(case)
    overlap_is_short_and_from_the_same_section(case)
    ids_depend_on_path_and_position(case)
    blocks_cover_the_text_and_contain_whole_code(case)
    assert chunk_doc(parse(source, markdown_format), limits) == case.chunks


def every_line_is_in_one_block(case: Case) -> None:
    parsed = case.parsed
    taken = [
        line for block in parsed.blocks for line in range(block.start_line, block.end_line + 1)
    ]
    lines = parsed.source.split("\n")
    filled = {number for number, line in enumerate(lines, 1) if line.strip()}
    assert len(set(taken)) == len(taken)
    assert taken == sorted(taken)
    assert filled <= set(taken)
    for block in parsed.blocks:
        text = "\n".join(lines[block.start_line - 1 : block.end_line])
        assert parsed.source[block.start : block.end] == text


def no_chunk_crosses_a_heading(case: Case) -> None:
    """A chunk belongs to the last heading above it whose containers are still open."""
    headings = case.parsed.document.headings
    for chunk in case.chunks:
        above = [block for block in case.parsed.blocks if block.start_line <= chunk.start_line]
        around = above[-1].containers
        open_above = [
            headings[block.heading]
            for block in above
            if block.heading is not None and around[: len(block.containers)] == block.containers
        ]
        last = open_above[-1] if open_above else None
        assert not [h for h in headings if chunk.start_line < h.line <= chunk.end_line]
        assert chunk.heading_level == (last.level if last else 0)
        assert chunk.anchor == (last.anchor if last else None)
        assert chunk.section_heading == ((last.text if last else "") or chunk.title)
        assert chunk.heading_breadcrumb[0] == chunk.title


def code_tables_and_math_are_never_cut(case: Case) -> None:
    for block in case.parsed.blocks:
        if block.kind not in _ATOMIC:
            continue
        text = " ".join(case.clean(block).split())
        start, end = case.to_bytes(block)
        containing = [
            chunk
            for chunk in case.chunks
            if chunk.content_start_byte <= start and end <= chunk.end_byte
        ]
        assert len(containing) == 1
        for chunk in case.chunks:
            if chunk.start_byte < end and start < chunk.end_byte:
                assert chunk.start_byte <= start
                assert end <= chunk.end_byte
                assert text in " ".join(chunk.text.split())


def spans_are_in_order_and_cover_the_content_once(case: Case) -> None:
    spans = [(chunk.content_start_byte, chunk.end_byte) for chunk in case.chunks]
    assert all(start < end for start, end in spans)
    assert all(spans[i][1] <= spans[i + 1][0] for i in range(len(spans) - 1))
    whole = read_span(case.parsed, 0, len(case.parsed.source))
    pieces = "".join(case.clean_between(start, end) for start, end in spans)
    assert re.sub(r"\s", "", pieces) == re.sub(r"\s", "", whole)


def cleaning_the_span_gives_the_text(case: Case) -> None:
    for chunk in case.chunks:
        assert case.clean_between(chunk.start_byte, chunk.end_byte) == chunk.text
        assert chunk.text.strip()
        assert chunk.embedding_text.endswith(chunk.text)
        lines = case.parsed.source.count
        assert lines("\n", 0, case.to_char_offset(chunk.start_byte)) + 1 == chunk.start_line
        assert lines("\n", 0, case.to_char_offset(chunk.end_byte)) + 1 == chunk.end_line


def only_a_single_atomic_block_exceeds_the_maximum(case: Case) -> None:
    for chunk in case.chunks:
        assert chunk.token_count == count_tokens(chunk.text)
        if chunk.token_count <= case.limits.max_tokens:
            continue
        inside = [
            block
            for block in case.parsed.blocks
            if case.to_bytes(block)[0] < chunk.end_byte
            and chunk.start_byte < case.to_bytes(block)[1]
            and case.clean(block).strip()
        ]
        assert [block.kind in _ATOMIC for block in inside] == [True]


def overlap_is_short_and_from_the_same_section(case: Case) -> None:
    before = None
    for chunk in case.chunks:
        overlap = case.clean_between(chunk.start_byte, chunk.content_start_byte)
        if overlap:
            assert before is not None
            assert before.content_start_byte <= chunk.start_byte < before.end_byte
            assert (before.section_heading, before.anchor) == (chunk.section_heading, chunk.anchor)
            assert count_tokens(overlap) <= 2 * case.limits.overlap_tokens
        before = chunk


def ids_depend_on_path_and_position(case: Case) -> None:
    assert [chunk.chunk_index for chunk in case.chunks] == list(range(len(case.chunks)))
    assert [chunk.chunk_id for chunk in case.chunks] == [
        make_chunk_id(chunk.doc_path, chunk.chunk_index) for chunk in case.chunks
    ]


def blocks_cover_the_text_and_contain_whole_code(case: Case) -> None:
    for chunk in case.chunks:
        check_text_blocks(chunk.text, chunk.blocks)
        code = [
            _remove_white_space(block.text)
            for block in case.parsed.blocks
            if block.kind == "code"
            and chunk.start_byte <= case.to_bytes(block)[0]
            and case.to_bytes(block)[1] <= chunk.end_byte
            and block.text.strip()
        ]
        assert code == [
            _remove_white_space(chunk.text[block.start : block.end])
            for block in chunk.blocks
            if block.kind is TextBlockKind.CODE
        ]


def _remove_white_space(text: str) -> str:
    return "".join(text.split())


@given(st.text(), _FORMATS)
def test_any_text_is_parsed_or_refused_for_its_front_matter(
    source: str, markdown_format: MarkdownFormat
) -> None:
    try:
        parsed = parse(source.encode("utf-8", "replace").decode(), markdown_format)
    except FrontMatterError:
        assume(source.startswith("---"))
        return
    every_line_is_in_one_block(Case(parsed, ChunkLimits(), chunk_doc(parsed, ChunkLimits())))
