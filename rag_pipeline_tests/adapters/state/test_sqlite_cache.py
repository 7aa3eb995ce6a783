"""Tests of the embedding cache in a SQLite file."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.adapters.state.sqlite_cache import SqliteEmbeddingCache
from rag_pipeline.core.errors import StoreError
from rag_pipeline.core.vectors import STORED_DTYPE, ChunkVectors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FINGERPRINT = "local/m/4/100/16"


def make_vectors(seed: int, windows: int = 2) -> ChunkVectors:
    rows = (
        np.random.default_rng(seed)
        .normal(size=(windows + 1, 4))
        .astype(STORED_DTYPE)
        .astype(np.float32)
    )
    return ChunkVectors(rows[0], rows[1:])


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[SqliteEmbeddingCache]:
    """Yield an empty cache in a folder that does not exist yet."""
    cache = SqliteEmbeddingCache(tmp_path / "new" / "cache.sqlite")
    yield cache
    cache.close()


def test_an_empty_cache_returns_no_vectors(cache: SqliteEmbeddingCache) -> None:
    assert cache.get_many(FINGERPRINT, ["a"]) == {}
    assert cache.get_many(FINGERPRINT, []) == {}
    assert cache.prune({}) == 0


def test_vectors_are_read_back_exactly(cache: SqliteEmbeddingCache) -> None:
    vectors = {f"h{seed}": make_vectors(seed, seed % 5 + 1) for seed in range(20)}
    cache.put_many(FINGERPRINT, vectors)
    cache.close()
    found = cache.get_many(FINGERPRINT, [*vectors, "unknown"])
    assert found.keys() == vectors.keys()
    for text_hash, entry in vectors.items():
        assert found[text_hash].dense.tobytes() == entry.dense.tobytes()
        assert found[text_hash].windows.tobytes() == entry.windows.tobytes()


def test_models_do_not_share_vectors(cache: SqliteEmbeddingCache) -> None:
    cache.put_many(FINGERPRINT, {"a": make_vectors(1)})
    assert cache.get_many("other", ["a"]) == {}


def test_more_hashes_than_one_query_allows_are_found(cache: SqliteEmbeddingCache) -> None:
    vectors = {f"h{number}": make_vectors(number, 1) for number in range(1200)}
    cache.put_many(FINGERPRINT, vectors)
    assert len(cache.get_many(FINGERPRINT, list(vectors))) == 1200


def test_later_vectors_replace_earlier_ones(cache: SqliteEmbeddingCache) -> None:
    for seed in (1, 2):
        cache.put_many(FINGERPRINT, {"a": make_vectors(seed)})
    found = cache.get_many(FINGERPRINT, ["a"])["a"]
    assert found.dense.tolist() == make_vectors(2).dense.tolist()


@given(kept=st.sets(st.sampled_from("abcd")), stored=st.sets(st.sampled_from("abcd"), min_size=1))
def test_prune_keeps_only_the_given_hashes(
    tmp_path_factory: pytest.TempPathFactory, kept: set[str], stored: set[str]
) -> None:
    cache = SqliteEmbeddingCache(tmp_path_factory.mktemp("cache") / "cache.sqlite")
    try:
        for fingerprint in (FINGERPRINT, "old model"):
            cache.put_many(fingerprint, {name: make_vectors(1) for name in stored})
        assert cache.prune({FINGERPRINT: frozenset(kept)}) == 2 * len(stored) - len(kept & stored)
        assert cache.get_many(FINGERPRINT, list("abcd")).keys() == kept & stored
        assert cache.get_many("old model", list("abcd")) == {}
    finally:
        cache.close()


def test_a_damaged_row_counts_as_missing(cache: SqliteEmbeddingCache, tmp_path: Path) -> None:
    cache.put_many(FINGERPRINT, {name: make_vectors(1) for name in "abcd"})
    cache.close()
    path = tmp_path / "new" / "cache.sqlite"
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("update half_embeddings set vectors = x'0102' where text_hash = 'a'")
        connection.execute("update half_embeddings set dim = 0 where text_hash = 'b'")
        connection.execute("update half_embeddings set dim = 12 where text_hash = 'c'")
    connection.close()
    assert cache.get_many(FINGERPRINT, list("abcd")).keys() == {"d"}


@pytest.mark.parametrize("kind", ["garbage", "truncated"])
def test_a_damaged_file_is_kept_aside_with_a_warning_and_a_new_one_is_begun(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "cache.sqlite"
    first = SqliteEmbeddingCache(path)
    first.put_many(FINGERPRINT, {str(number): make_vectors(number) for number in range(2000)})
    first.close()
    data = path.read_bytes()
    damaged = b"no database" * 200 if kind == "garbage" else data[: len(data) // 2]
    path.write_bytes(damaged)
    cache = SqliteEmbeddingCache(path)
    hashes = [str(number) for number in range(2000)]
    assert len(cache.get_many(FINGERPRINT, hashes)) < 2000
    cache.put_many(FINGERPRINT, {"a": make_vectors(1)})
    assert cache.get_many(FINGERPRINT, ["a"]).keys() == {"a"}
    (aside,) = tmp_path.glob("cache.sqlite.damaged-*T??????")
    assert aside.read_bytes() == damaged
    assert aside.name in caplog.text


def test_the_error_for_a_folder_in_place_of_the_cache_names_it(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="permissions"):
        SqliteEmbeddingCache(tmp_path).get_many(FINGERPRINT, ["a"])


def test_a_failed_write_stores_nothing(cache: SqliteEmbeddingCache) -> None:
    broken = ChunkVectors(np.zeros(4, np.float32), np.zeros((1, 3), np.float32))
    with pytest.raises(ValueError, match="dimension"):
        cache.put_many(FINGERPRINT, {"a": make_vectors(1), "b": broken})
    assert cache.get_many(FINGERPRINT, ["a", "b"]) == {}


def test_vectors_that_another_process_wrote_are_found(
    cache: SqliteEmbeddingCache, tmp_path: Path
) -> None:
    cache.put_many(FINGERPRINT, {"mine": make_vectors(1)})
    code = """
import sys
from pathlib import Path
from rag_pipeline.adapters.state.sqlite_cache import SqliteEmbeddingCache
from rag_pipeline_tests.adapters.state.test_sqlite_cache import FINGERPRINT, make_vectors
cache = SqliteEmbeddingCache(Path(sys.argv[1]))
assert cache.get_many(FINGERPRINT, ["mine"])
cache.put_many(FINGERPRINT, {"theirs": make_vectors(2)})
"""
    path = tmp_path / "new" / "cache.sqlite"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    assert cache.get_many(FINGERPRINT, ["mine", "theirs"]).keys() == {"mine", "theirs"}
