"""Sentence windows: spans of a chunk's own text, asked for with the text they stand in."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_pipeline.adapters.embedding_cache import SqliteEmbeddingCache
from rag_pipeline.adapters.local_embedder import LocalEmbedder
from rag_pipeline.ingestion.embedding import cut_windows, embed_chunks
from rag_pipeline_tests.hashing_embedder import HashingEmbedder
from rag_pipeline_tests.ingestion.records import make_chunk

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rag_pipeline.core.models import EmbeddingUsage, FloatMatrix

SHORT = "A robot walks."
LONG = " ".join(f"Sentence {number} tells of one more joint." for number in range(12))
WORDS = st.sampled_from(
    ["robot", "Joint.", "torque!", "x" * 300, "機器人", "ros2_ok", "\n\n", "- a", " ", "e.g.", "é"]
)


class RecordingEmbedder(HashingEmbedder):
    """Remembers the windows that it was asked for, by text."""

    asked: tuple[tuple[str, ...], ...] = ()

    def embed_passages(
        self, texts: Sequence[str], windows: Sequence[Sequence[tuple[int, int]]] = ()
    ) -> tuple[FloatMatrix, EmbeddingUsage]:
        self.asked = tuple(
            tuple(text[start:end] for start, end in spans)
            for text, spans in zip(texts, windows, strict=True)
        )
        return super().embed_passages(texts, windows)


@pytest.fixture
def cache(tmp_path: Path) -> SqliteEmbeddingCache:
    return SqliteEmbeddingCache(tmp_path / "cache.sqlite")


def test_a_text_of_one_window_has_its_own_vector_for_it(cache: SqliteEmbeddingCache) -> None:
    embedder = RecordingEmbedder()
    (vectors,) = embed_chunks([make_chunk(text=SHORT)], embedder, cache).vectors
    np.testing.assert_array_equal(vectors.windows, vectors.dense[np.newaxis])
    assert embedder.asked == ((),)


def test_windows_are_of_the_chunks_own_text_in_order(cache: SqliteEmbeddingCache) -> None:
    embedder = RecordingEmbedder()
    (vectors,) = embed_chunks([make_chunk(text=LONG)], embedder, cache).vectors
    (windows,) = embedder.asked
    assert windows[0].startswith("Sentence 0 tells")
    assert windows[-1].endswith("Sentence 11 tells of one more joint.")
    assert all(count <= 24 for count in embedder.count_tokens(windows))
    for one, following in pairwise(windows):
        assert following.split(".")[0] == one.split(".")[-2].strip()
    np.testing.assert_array_equal(vectors.windows, [embedder.embed_query(w) for w in windows])


def test_windows_stay_with_their_chunks(cache: SqliteEmbeddingCache) -> None:
    chunks = [make_chunk(n, text) for n, text in enumerate((SHORT, LONG, f"{LONG} {SHORT}", SHORT))]
    together = embed_chunks(chunks, HashingEmbedder(), cache)
    for chunk, vectors in zip(chunks, together.vectors, strict=True):
        # Another name has the same vectors, and none of them in the cache.
        (alone,) = embed_chunks([chunk], HashingEmbedder(name=chunk.chunk_id), cache).vectors
        np.testing.assert_array_equal(alone.dense, vectors.dense)
        np.testing.assert_array_equal(alone.windows, vectors.windows)


def test_windows_of_a_text_over_the_limit_lie_in_its_parts(cache: SqliteEmbeddingCache) -> None:
    embedder = RecordingEmbedder(max_input_tokens=40)
    chunk = make_chunk(text=LONG)
    embedded = embed_chunks([chunk], embedder, cache)
    assert embedded.windowed_chunk_ids == (chunk.chunk_id,)
    parts = embedder.passages
    assert len(parts) > 1
    assert "".join(" ".join(parts).split()) == "".join(chunk.embedding_text.split())
    mean = np.mean([embedder.embed_query(part) for part in parts], axis=0)
    dense = embedded.vectors[0].dense
    np.testing.assert_allclose(dense, mean / np.linalg.norm(mean), atol=1e-6)
    windows = [window for asked in embedder.asked for window in asked]
    assert windows[0].startswith("Sentence 0")
    assert all(sentence in "".join(windows) for sentence in LONG.split(". "))
    assert len(embedded.vectors[0].windows) == len(windows)


def test_a_part_of_headings_alone_has_no_windows(cache: SqliteEmbeddingCache) -> None:
    embedder = RecordingEmbedder(max_input_tokens=30)
    headings = "A heading of words. " * 8
    chunk = replace(make_chunk(text=SHORT), embedding_text=f"{headings}\n\n{SHORT}")
    embed_chunks([chunk], embedder, cache)
    *before, last = embedder.asked
    assert before
    assert not any(before)
    assert last == (SHORT,)


def test_a_model_without_windows_is_asked_for_texts_alone(cache: SqliteEmbeddingCache) -> None:
    embedder = HashingEmbedder(max_input_tokens=40, window_tokens=None)
    embedded = embed_chunks([make_chunk(text=SHORT), make_chunk(1, LONG)], embedder, cache)
    parts = [embedder.embed_query(part) for part in embedder.passages[1:]]
    assert len(embedded.vectors[0].windows) == 1
    np.testing.assert_array_equal(embedded.vectors[1].windows, parts)


@pytest.mark.parametrize("overlap", [False, True])
@given(text=st.lists(WORDS, max_size=40).map(" ".join), max_tokens=st.integers(1, 30))
@example(text="x" * 300, max_tokens=1)
@example(text="機" * 90, max_tokens=7)
def test_spans_hold_every_character_within_the_limit_of_word_pieces(
    text: str, max_tokens: int, *, overlap: bool
) -> None:
    embedder = LocalEmbedder()
    windows = cut_windows(text, max_tokens, embedder, overlap=overlap)
    held = {place for start, end in windows for place in range(start, end)}
    assert all(char.isspace() for place, char in enumerate(text) if place not in held)
    cut = [text[start:end] for start, end in windows]
    assert all(window == window.strip() != "" for window in cut)
    assert list(windows) == sorted(windows)
    counts = zip(cut, embedder.count_tokens(cut), strict=True)
    assert all(count <= max_tokens for window, count in counts if len(window) > 1)
    if not overlap:
        assert all(one[1] <= following[0] for one, following in pairwise(windows))


def test_the_local_model_embeds_a_text_once_for_all_windows(cache: SqliteEmbeddingCache) -> None:
    embedder = LocalEmbedder()
    chunk = make_chunk(text=LONG)
    embedded = embed_chunks([chunk], embedder, cache)
    (vectors,) = embedded.vectors
    assert embedded.usage.tokens == embedder.count_tokens([chunk.embedding_text])[0]
    np.testing.assert_allclose(np.linalg.norm(vectors.windows, axis=1), 1, atol=1e-5)
    assert len(vectors.windows) > 1
    np.testing.assert_allclose(embedder.embed_query(chunk.embedding_text), vectors.dense, atol=1e-6)
