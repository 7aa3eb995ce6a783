"""Tests of the vectors in both kinds of database, and in a damaged SQLite file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_pipeline.adapters.database.sqlite import SqliteDatabase
from rag_pipeline.adapters.database.vectors import SqlEmbeddingCache
from rag_pipeline.core.errors import StoreError
from rag_pipeline.core.vectors import STORED_DTYPE, ChunkVectors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rag_pipeline.adapters.database.ledger import BookState

FINGERPRINT = "local/m/4/100/16"


def make_vectors(seed: int, windows: int = 2) -> ChunkVectors:
    rows = (
        np.random.default_rng(seed)
        .normal(size=(windows + 1, 4))
        .astype(STORED_DTYPE)
        .astype(np.float32)
    )
    return ChunkVectors(rows[0], rows[1:])


def open_cache(path: Path) -> SqlEmbeddingCache:
    return SqlEmbeddingCache(SqliteDatabase(path), "")


@pytest.fixture
def cache(open_state: Callable[[], BookState]) -> Iterator[SqlEmbeddingCache]:
    """Yield an empty cache in each kind of database."""
    state = open_state()
    cache = SqlEmbeddingCache(state.database, state.state_name)
    yield cache
    cache.close()


def test_an_empty_cache_returns_no_vectors(cache: SqlEmbeddingCache) -> None:
    assert cache.get_many(FINGERPRINT, ["a"]) == {}
    assert cache.get_many(FINGERPRINT, []) == {}
    assert cache.prune({}) == 0


def test_vectors_are_read_back_exactly(cache: SqlEmbeddingCache) -> None:
    vectors = {f"h{seed}": make_vectors(seed, seed % 5 + 1) for seed in range(20)}
    cache.put_many(FINGERPRINT, vectors)
    cache.close()
    found = cache.get_many(FINGERPRINT, [*vectors, "unknown"])
    assert found.keys() == vectors.keys()
    for text_hash, entry in vectors.items():
        assert found[text_hash].dense.tobytes() == entry.dense.tobytes()
        assert found[text_hash].windows.tobytes() == entry.windows.tobytes()


def test_models_do_not_share_vectors(cache: SqlEmbeddingCache) -> None:
    cache.put_many(FINGERPRINT, {"a": make_vectors(1)})
    assert cache.get_many("other", ["a"]) == {}


def test_more_hashes_than_one_query_allows_are_found(cache: SqlEmbeddingCache) -> None:
    vectors = {f"h{number}": make_vectors(number, 1) for number in range(1200)}
    cache.put_many(FINGERPRINT, vectors)
    assert len(cache.get_many(FINGERPRINT, list(vectors))) == 1200


def test_later_vectors_replace_earlier_ones(cache: SqlEmbeddingCache) -> None:
    for seed in (1, 2):
        cache.put_many(FINGERPRINT, {"a": make_vectors(seed)})
    found = cache.get_many(FINGERPRINT, ["a"])["a"]
    assert found.dense.tolist() == make_vectors(2).dense.tolist()


@given(kept=st.sets(st.sampled_from("abcd")), stored=st.sets(st.sampled_from("abcd"), min_size=1))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
def test_prune_keeps_only_the_given_hashes(
    cache: SqlEmbeddingCache, kept: set[str], stored: set[str]
) -> None:
    cache.prune({})
    for fingerprint in (FINGERPRINT, "old model"):
        cache.put_many(fingerprint, {name: make_vectors(1) for name in stored})
    assert cache.prune({FINGERPRINT: frozenset(kept)}) == 2 * len(stored) - len(kept & stored)
    assert cache.get_many(FINGERPRINT, list("abcd")).keys() == kept & stored
    assert cache.get_many("old model", list("abcd")) == {}


def test_pruning_a_book_keeps_the_vectors_of_another_book(
    open_state: Callable[..., BookState],
) -> None:
    book, other = (open_state(name) for name in ("book", "other"))
    caches = [SqlEmbeddingCache(one.database, one.state_name) for one in (book, other)]
    for cache in caches:
        cache.put_many(FINGERPRINT, {"a": make_vectors(1)})
    assert caches[0].prune({}) == 1
    assert [set(cache.get_many(FINGERPRINT, ["a"])) for cache in caches] == [set(), {"a"}]


def test_a_damaged_row_counts_as_missing(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    cache = open_cache(path)
    cache.put_many(FINGERPRINT, {name: make_vectors(1) for name in "abcd"})
    cache.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update vectors set numbers = x'0102' where text_hash = 'a'")
        connection.execute("update vectors set dim = 0 where text_hash = 'b'")
        connection.execute("update vectors set dim = 12 where text_hash = 'c'")
    assert cache.get_many(FINGERPRINT, list("abcd")).keys() == {"d"}


@pytest.mark.parametrize("kind", ["garbage", "truncated"])
def test_a_damaged_file_is_kept_aside_with_a_warning_and_a_new_one_is_begun(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "state.sqlite"
    first = open_cache(path)
    first.put_many(FINGERPRINT, {str(number): make_vectors(number) for number in range(2000)})
    first.close()
    data = path.read_bytes()
    damaged = b"no database" * 200 if kind == "garbage" else data[: len(data) // 2]
    path.write_bytes(damaged)
    cache = open_cache(path)
    hashes = [str(number) for number in range(2000)]
    assert len(cache.get_many(FINGERPRINT, hashes)) < 2000
    cache.put_many(FINGERPRINT, {"a": make_vectors(1)})
    assert cache.get_many(FINGERPRINT, ["a"]).keys() == {"a"}
    (aside,) = tmp_path.glob("state.sqlite.damaged-*T??????")
    assert aside.read_bytes() == damaged
    assert aside.name in caplog.text


def test_the_error_for_a_folder_in_place_of_the_cache_names_it(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="permissions"):
        open_cache(tmp_path).get_many(FINGERPRINT, ["a"])


def test_a_failed_write_stores_nothing(cache: SqlEmbeddingCache) -> None:
    broken = ChunkVectors(np.zeros(4, np.float32), np.zeros((1, 3), np.float32))
    with pytest.raises(ValueError, match="dimension"):
        cache.put_many(FINGERPRINT, {"a": make_vectors(1), "b": broken})
    assert cache.get_many(FINGERPRINT, ["a", "b"]) == {}
