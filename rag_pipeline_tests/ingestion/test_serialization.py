"""Tests of stage outputs as bytes. Damaged outputs are treated as missing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.core.editions import Edition
from rag_pipeline.core.vectors import FORMAT_VERSION
from rag_pipeline.ingestion.serialization import (
    KeptChunks,
    KeptSource,
    dump_chunks,
    dump_record,
    dump_source,
    load_chunks,
    load_record,
    load_source,
)
from rag_pipeline_tests.ingestion.records import make_chunk, make_document

CHUNKS = dump_chunks(
    KeptChunks("sha", "f", make_document(), (make_chunk(0), make_chunk(1, "More text.")))
)


@given(texts=st.lists(st.text(min_size=1), max_size=4))
def test_loaded_chunks_equal_the_dumped_chunks(texts: list[str]) -> None:
    chunks = tuple(make_chunk(index, text) for index, text in enumerate(texts))
    kept = KeptChunks("sha", "f", make_document(), chunks)
    assert load_chunks(dump_chunks(kept)) == kept


def test_only_an_edition_other_than_the_default_is_stored_with_a_document() -> None:
    assert b"edition" not in CHUNKS
    document = replace(make_document(), edition=Edition("docs", "2.0", "2.0.x", is_latest=False))
    kept = KeptChunks("sha", "f", document, (make_chunk(),))
    assert load_chunks(dump_chunks(kept)) == kept


def test_lone_surrogates_in_a_record_are_preserved() -> None:
    record = {"source": "half \ud83d of a pair"}
    assert load_record(dump_record(record)) == record


def test_no_data_and_data_of_another_format_version_count_as_missing() -> None:
    assert load_record(None) is None
    assert load_chunks(None) is None
    other = CHUNKS.replace(f'"format_version": {FORMAT_VERSION}'.encode(), b'"format_version": 999')
    assert other != CHUNKS
    assert load_chunks(other) is None


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"[]", b"null", b"1", b"\xff\xfe", b'{"format_version": 1}', b"PK\x03\x04"],
)
def test_bytes_of_another_kind_count_as_missing(data: bytes) -> None:
    assert load_chunks(data) is None


@given(position=st.integers(0, len(CHUNKS) - 1), byte=st.integers(0, 255), cut=st.booleans())
def test_loading_damaged_chunks_never_raises(position: int, byte: int, *, cut: bool) -> None:
    tail = b"" if cut else bytes([byte]) + CHUNKS[position + 1 :]
    load_chunks(CHUNKS[:position] + tail)


@pytest.mark.parametrize("record", [{}, {"sha256": "a"}, {"sha256": "a", "source": 1}])
def test_a_source_without_its_fields_counts_as_missing(record: dict[str, object]) -> None:
    assert load_source(dump_record(record)) is None


def test_a_loaded_source_equals_the_dumped_source() -> None:
    kept = KeptSource("sha", b"# A", {"_part.md": b"part", "gone.md": None})
    assert load_source(dump_source("a.md", kept)) == kept
