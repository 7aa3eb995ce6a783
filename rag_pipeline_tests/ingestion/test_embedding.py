"""Tests of embedding: each text is embedded once, and long texts are embedded in parts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from rag_pipeline.core.errors import EmbeddingDimensionError
from rag_pipeline.core.ids import hash_text
from rag_pipeline.core.vectors import ChunkVectors, EmbeddingUsage
from rag_pipeline.ingestion.stages import cut_parts, embed_chunks
from rag_pipeline_tests.hashing_embedder import DIM, HashingEmbedder
from rag_pipeline_tests.ingestion.records import make_chunk, renumber

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rag_pipeline.core.vectors import FloatMatrix, Window


class DictCache:
    """An `EmbeddingCache` in a dictionary."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], ChunkVectors] = {}

    def get_many(self, fingerprint: str, text_hashes: Sequence[str]) -> dict[str, ChunkVectors]:
        return {
            text_hash: self.rows[fingerprint, text_hash]
            for text_hash in text_hashes
            if (fingerprint, text_hash) in self.rows
        }

    def put_many(self, fingerprint: str, vectors: Mapping[str, ChunkVectors]) -> None:
        self.rows |= {(fingerprint, text_hash): entry for text_hash, entry in vectors.items()}

    def prune(self, keep: Mapping[str, Iterable[str]]) -> int:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


def test_without_chunks_no_request_is_made() -> None:
    embedder = HashingEmbedder()
    embedded = embed_chunks([], embedder, DictCache())
    assert (embedded.vectors, embedded.usage, embedder.calls) == ((), EmbeddingUsage(), 0)


def test_vectors_are_in_the_order_of_their_chunks() -> None:
    chunks = [make_chunk(index, f"Text number {index}.") for index in range(5)]
    together = embed_chunks(chunks, HashingEmbedder(), DictCache())
    for chunk, vectors in zip(chunks, together.vectors, strict=True):
        alone = embed_chunks([chunk], HashingEmbedder(), DictCache()).vectors[0]
        assert vectors.dense.tolist() == alone.dense.tolist()
        assert vectors.windows.tolist() == alone.windows.tolist()
        assert vectors.windows.shape == (1, DIM)


def test_new_texts_of_many_chunks_are_sent_in_one_request() -> None:
    embedder = HashingEmbedder()
    chunks = [make_chunk(index, f"Text number {index}.") for index in range(5)]
    embedded = embed_chunks(chunks, embedder, DictCache())
    assert (embedder.calls, embedded.usage.requests) == (1, 1)
    assert embedder.passages == [chunk.embedding_text for chunk in chunks]


def test_equal_texts_in_different_places_are_embedded_once() -> None:
    cache, embedder = DictCache(), HashingEmbedder()
    first, other = make_chunk(0, "Twice."), make_chunk(1, "Once.")
    embedded = embed_chunks([first, other, renumber(first, 7)], embedder, cache)
    assert embedded.embedded_hashes == {hash_text(c.embedding_text) for c in (first, other)}
    assert embedded.vectors[0] is embedded.vectors[2]
    elsewhere = replace(renumber(other, 3), doc_path="other.md", url="/elsewhere")
    again = embed_chunks([elsewhere], embedder, cache)
    assert (again.embedded_hashes, again.usage, embedder.calls) == (
        frozenset(),
        EmbeddingUsage(),
        1,
    )


def test_models_do_not_share_cached_vectors() -> None:
    cache = DictCache()
    embed_chunks([make_chunk()], HashingEmbedder(), cache)
    for other in (HashingEmbedder(name="other"), HashingEmbedder(window_words=None)):
        assert embed_chunks([make_chunk()], other, cache).embedded_hashes


def test_the_vector_of_a_text_over_the_limit_is_the_mean_over_its_parts() -> None:
    text = " ".join(f"Sentence number {number} is here." for number in range(12))
    chunk = make_chunk(0, text)
    embedder = HashingEmbedder(max_input_tokens=20, window_words=None)
    embedded = embed_chunks([chunk, make_chunk(1, "Short.")], embedder, DictCache())
    assert embedded.windowed_hashes == {hash_text(chunk.embedding_text)}
    vectors = embedded.vectors[0]
    spans = cut_parts(chunk.embedding_text, 20, embedder)
    rows = np.stack([embedder.embed_query(chunk.embedding_text[a:b]) for a, b in spans])
    assert len(spans) == 4
    assert vectors.windows == pytest.approx(rows)
    mean = rows.mean(axis=0)
    assert vectors.dense == pytest.approx(mean / np.linalg.norm(mean), abs=1e-3)


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda rows: rows[:, : DIM // 2], id="wrong_dimension"),
        pytest.param(lambda rows: rows * np.nan, id="not_finite"),
    ],
)
@pytest.mark.parametrize("part", ["dense", "windows"])
def test_a_damaged_cache_entry_is_embedded_again(
    spoil: Callable[[FloatMatrix], FloatMatrix], part: str
) -> None:
    cache, chunk = DictCache(), make_chunk()
    sound = embed_chunks([chunk], HashingEmbedder(), cache).vectors[0]
    rows = np.atleast_2d(getattr(sound, part))
    spoiled = spoil(rows)[0] if part == "dense" else spoil(rows)
    cache.rows = {key: replace(sound, **{part: spoiled}) for key in cache.rows}
    embedded = embed_chunks([chunk], HashingEmbedder(), cache)
    assert embedded.embedded_hashes == {hash_text(chunk.embedding_text)}
    for vectors in (*embedded.vectors, *cache.rows.values()):
        assert vectors.dense.tolist() == sound.dense.tolist()
        assert vectors.windows.tolist() == sound.windows.tolist()


class Faulty(HashingEmbedder):
    """An embedder that passes its vectors through a function of the test."""

    def __init__(self, spoil: object) -> None:
        super().__init__()
        self.spoil = spoil

    def embed_passages(
        self, texts: Sequence[str], windows: Sequence[Sequence[Window]] = ()
    ) -> tuple[object, EmbeddingUsage]:
        rows, usage = super().embed_passages(texts, windows)
        return self.spoil(rows), usage


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda rows: rows[:-1], id="short_list"),
        pytest.param(lambda rows: rows[:, :-1], id="wrong_dimension"),
        pytest.param(lambda rows: rows * np.nan, id="not_finite"),
        pytest.param(lambda rows: np.vstack([rows, rows]), id="too_many"),
    ],
)
def test_wrong_vectors_raise_an_error_and_are_not_cached(spoil: object) -> None:
    cache = DictCache()
    with pytest.raises(EmbeddingDimensionError, match="terms"):
        embed_chunks([make_chunk()], Faulty(spoil), cache)
    assert cache.rows == {}
