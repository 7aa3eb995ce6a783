"""Tests of stage outputs as bytes. Damaged outputs are treated as missing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.core.ids import hash_text
from rag_pipeline.core.vectors import FORMAT_VERSION, ChunkVectors
from rag_pipeline.ingestion.serialization import (
    KeptChunks,
    dump_chunks,
    dump_record,
    dump_vectors,
    load_chunks,
    load_record,
    load_vectors,
)
from rag_pipeline_tests.ingestion.records import make_chunk, make_document


def make_vectors(seed: int, windows: int) -> ChunkVectors:
    """Build random vectors of dimension 4 with a number of windows."""
    rows = np.random.default_rng(seed).normal(size=(windows + 1, 4)).astype(np.float32)
    return ChunkVectors(rows[0], rows[1:])


MODEL = "provider/model"
VECTORS = dump_vectors(
    MODEL, [hash_text("a"), hash_text("b")], [make_vectors(1, 3), make_vectors(2, 1)]
)
CHUNKS = dump_chunks(
    KeptChunks("sha", "f", make_document(), (make_chunk(0), make_chunk(1, "More text.")))
)


@given(texts=st.lists(st.text(min_size=1), max_size=4))
def test_loaded_chunks_equal_the_dumped_chunks(texts: list[str]) -> None:
    chunks = tuple(make_chunk(index, text) for index, text in enumerate(texts))
    kept = KeptChunks("sha", "f", make_document(), chunks)
    assert load_chunks(dump_chunks(kept)) == kept


def test_lone_surrogates_in_a_record_are_preserved() -> None:
    record = {"source": "half \ud83d of a pair"}
    assert load_record(dump_record(record)) == record


@given(counts=st.lists(st.integers(1, 4), max_size=4))
def test_loaded_vectors_equal_the_dumped_vectors(counts: list[int]) -> None:
    vectors = [make_vectors(seed, count) for seed, count in enumerate(counts)]
    hashes = [hash_text(str(seed)) for seed in range(len(counts))]
    loaded = load_vectors(dump_vectors(MODEL, hashes, vectors), MODEL)
    assert loaded is not None
    assert list(loaded) == hashes
    for text_hash, entry in zip(hashes, vectors, strict=True):
        assert loaded[text_hash].dense.tolist() == entry.dense.tolist()
        assert loaded[text_hash].windows.tolist() == entry.windows.tolist()


def test_vectors_of_another_model_are_not_returned() -> None:
    assert load_vectors(VECTORS, "provider/other") == {}


def test_no_data_and_data_of_another_format_version_count_as_missing() -> None:
    assert load_record(None) is None
    assert load_chunks(None) is None
    assert load_vectors(None, MODEL) is None
    other = CHUNKS.replace(f'"format_version": {FORMAT_VERSION}'.encode(), b'"format_version": 999')
    assert other != CHUNKS
    assert load_chunks(other) is None


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"[]", b"null", b"1", b"\xff\xfe", b'{"format_version": 1}', b"PK\x03\x04"],
)
def test_bytes_of_another_kind_count_as_missing(data: bytes) -> None:
    assert load_chunks(data) is None
    assert load_vectors(data, MODEL) is None


@given(position=st.integers(0, len(VECTORS) - 1), byte=st.integers(0, 255), cut=st.booleans())
def test_loading_damaged_vectors_never_raises(position: int, byte: int, *, cut: bool) -> None:
    tail = b"" if cut else bytes([byte]) + VECTORS[position + 1 :]
    load_vectors(VECTORS[:position] + tail, MODEL)


@given(position=st.integers(0, len(CHUNKS) - 1), byte=st.integers(0, 255), cut=st.booleans())
def test_loading_damaged_chunks_never_raises(position: int, byte: int, *, cut: bool) -> None:
    tail = b"" if cut else bytes([byte]) + CHUNKS[position + 1 :]
    load_chunks(CHUNKS[:position] + tail)
