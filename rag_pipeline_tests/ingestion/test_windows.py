"""Tests of word windows, which have vectors of their own, and of the parts of long texts."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_pipeline.adapters.database.sqlite import SqliteDatabase
from rag_pipeline.adapters.database.vectors import SqlEmbeddingCache
from rag_pipeline.adapters.embedders.local import LocalEmbedder
from rag_pipeline.core.text.terms import STOP_WORDS, find_content_words
from rag_pipeline.ingestion.stages import cut_parts, embed_chunks, group_words
from rag_pipeline_tests.hashing_embedder import HashingEmbedder, read_window
from rag_pipeline_tests.ingestion.records import make_chunk

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rag_pipeline.core.vectors import EmbeddingUsage, FloatMatrix, Window

SHORT = "A robot walks."
LONG = " ".join(f"Sentence {number} tells of one more joint." for number in range(12))
WORDS = st.sampled_from(
    ["robot", "Joint.", "torque!", "x" * 300, "機器人", "ros2_ok", "\n\n", "- a", " ", "e.g.", "é"]
)


class RecordingEmbedder(HashingEmbedder):
    """An embedder that records the windows of its last call, per text."""

    requested: tuple[tuple[str, ...], ...] = ()

    def embed_passages(
        self, texts: Sequence[str], windows: Sequence[Sequence[Window]] = ()
    ) -> tuple[FloatMatrix, EmbeddingUsage]:
        self.requested = tuple(
            tuple(read_window(text, window) for window in own)
            for text, own in zip(texts, windows, strict=True)
        )
        return super().embed_passages(texts, windows)


@pytest.fixture
def cache(tmp_path: Path) -> SqlEmbeddingCache:
    return SqlEmbeddingCache(SqliteDatabase(tmp_path / "state.sqlite"), "")


def test_a_text_of_only_stop_words_has_its_dense_vector_as_its_only_window(
    cache: SqlEmbeddingCache,
) -> None:
    embedder = RecordingEmbedder()
    chunk = replace(make_chunk(text="It is."), embedding_text="It is - to be.")
    (vectors,) = embed_chunks([chunk], embedder, cache).vectors
    np.testing.assert_array_equal(vectors.windows, vectors.dense[np.newaxis])
    assert embedder.requested == ((),)


def test_windows_consist_of_the_words_of_the_embedding_text_in_order(
    cache: SqlEmbeddingCache,
) -> None:
    embedder = RecordingEmbedder()
    chunk = make_chunk(text=LONG)
    (vectors,) = embed_chunks([chunk], embedder, cache).vectors
    (windows,) = embedder.requested
    words = [word for window in windows for word in window.split()]
    written = re.findall(r"\w+", chunk.embedding_text)
    assert words == [word for word in written if word.lower() not in STOP_WORDS]
    assert [len(window.split()) for window in windows[:-1]] == [8] * (len(windows) - 1)
    np.testing.assert_array_equal(vectors.windows, [embedder.embed_query(w) for w in windows])


def test_each_chunk_gets_the_vectors_of_its_own_windows(cache: SqlEmbeddingCache) -> None:
    chunks = [make_chunk(n, text) for n, text in enumerate((SHORT, LONG, f"{LONG} {SHORT}", SHORT))]
    together = embed_chunks(chunks, HashingEmbedder(), cache)
    for chunk, vectors in zip(chunks, together.vectors, strict=True):
        # A model with another name gives equal vectors but finds none in the cache.
        (alone,) = embed_chunks([chunk], HashingEmbedder(name=chunk.chunk_id), cache).vectors
        np.testing.assert_array_equal(alone.dense, vectors.dense)
        np.testing.assert_array_equal(alone.windows, vectors.windows)


def test_windows_of_a_text_over_the_limit_lie_within_its_parts(cache: SqlEmbeddingCache) -> None:
    embedder = RecordingEmbedder(max_input_tokens=40)
    chunk = make_chunk(text=LONG)
    embedded = embed_chunks([chunk], embedder, cache)
    assert embedded.windowed_hashes == embedded.embedded_hashes
    parts = embedder.passages
    assert len(parts) > 1
    assert "".join(" ".join(parts).split()) == "".join(chunk.embedding_text.split())
    mean = np.mean([embedder.embed_query(part) for part in parts], axis=0)
    dense = embedded.vectors[0].dense
    np.testing.assert_allclose(dense, mean / np.linalg.norm(mean), atol=1e-3)
    assert [" ".join(own) for own in embedder.requested] == [
        read_window(part, tuple(find_content_words(part))) for part in parts
    ]
    assert len(embedded.vectors[0].windows) == sum(map(len, embedder.requested))


def test_a_model_without_windows_gets_only_texts(cache: SqlEmbeddingCache) -> None:
    embedder = HashingEmbedder(max_input_tokens=40, window_words=None)
    embedded = embed_chunks([make_chunk(text=SHORT), make_chunk(1, LONG)], embedder, cache)
    parts = [embedder.embed_query(part) for part in embedder.passages[1:]]
    assert len(embedded.vectors[0].windows) == 1
    np.testing.assert_array_equal(embedded.vectors[1].windows, parts)


@given(text=st.lists(WORDS, max_size=40).map(" ".join), max_tokens=st.integers(1, 30))
@example(text="x" * 300, max_tokens=1)
@example(text="機" * 90, max_tokens=7)
def test_parts_cover_every_character_and_respect_the_token_limit(
    text: str, max_tokens: int
) -> None:
    embedder = LocalEmbedder()
    parts = cut_parts(text, max_tokens, embedder)
    covered = {place for start, end in parts for place in range(start, end)}
    assert all(char.isspace() for place, char in enumerate(text) if place not in covered)
    cut = [text[start:end] for start, end in parts]
    assert all(part == part.strip() != "" for part in cut)
    counts = zip(cut, embedder.count_tokens(cut), strict=True)
    assert all(count <= max_tokens for part, count in counts if len(part) > 1)
    assert all(part[1] <= following[0] for part, following in pairwise(parts))


@given(text=st.lists(WORDS, max_size=40).map(" ".join), count=st.integers(1, 9))
def test_windows_contain_every_word_once(text: str, count: int) -> None:
    windows = group_words(text, count)
    words = [span for window in windows for span in window]
    assert words == find_content_words(text)
    assert all(len(window) == count for window in windows[:-1])
    assert all(windows)


def test_the_local_model_embeds_a_text_only_once_for_all_its_windows(
    cache: SqlEmbeddingCache,
) -> None:
    embedder = LocalEmbedder()
    chunk = make_chunk(text=LONG)
    embedded = embed_chunks([chunk], embedder, cache)
    (vectors,) = embedded.vectors
    assert embedded.usage.tokens == embedder.count_tokens([chunk.embedding_text])[0]
    np.testing.assert_allclose(np.linalg.norm(vectors.windows, axis=1), 1, atol=1e-3)
    assert len(vectors.windows) > 1
    np.testing.assert_allclose(embedder.embed_query(chunk.embedding_text), vectors.dense, atol=1e-3)
