"""Tests of embedding cache, ledger and artifacts on an object store, here fsspec in memory."""

from __future__ import annotations

import hashlib
import io
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np
import pytest
from upath import UPath

from rag_pipeline.adapters.state.artifacts import UPathArtifactStore
from rag_pipeline.adapters.state.ledger import FileLedger
from rag_pipeline.adapters.state.object_cache import ObjectEmbeddingCache
from rag_pipeline.core.ids import DocId, hash_text
from rag_pipeline.core.models import Stage
from rag_pipeline.core.protocols.state import LedgerEntry
from rag_pipeline.core.vectors import STORED_DTYPE, ChunkVectors

if TYPE_CHECKING:
    from rag_pipeline.core.vectors import FloatVector


@pytest.fixture
def root() -> UPath:
    return UPath(f"memory://{uuid4().hex}")


def vectors(seed: int) -> ChunkVectors:
    rows = np.random.default_rng(seed).random((3, 4)).astype(STORED_DTYPE).astype(np.float32)
    dense: FloatVector = rows[0]
    return ChunkVectors(dense, rows[1:])


def test_vectors_are_read_back_exactly_and_only_for_their_own_model(root: UPath) -> None:
    cache = ObjectEmbeddingCache(root)
    kept = {f"{seed:064x}": vectors(seed) for seed in range(40)}
    cache.put_many("model-a", kept)
    found = cache.get_many("model-a", [*kept, "f" * 64])
    assert found.keys() == kept.keys()
    for text_hash, entry in kept.items():
        assert np.array_equal(found[text_hash].dense, entry.dense)
        assert np.array_equal(found[text_hash].windows, entry.windows)
    assert cache.get_many("model-b", list(kept)) == {}


def test_prune_keeps_only_the_given_hashes_and_damaged_objects_are_missing(root: UPath) -> None:
    cache = ObjectEmbeddingCache(root)
    cache.put_many("model-a", {"a" * 64: vectors(1), "b" * 64: vectors(2)})
    cache.put_many("model-b", {"a" * 64: vectors(3)})
    assert cache.prune({"model-a": frozenset({"a" * 64})}) == 2
    assert list(cache.get_many("model-a", ["a" * 64, "b" * 64])) == ["a" * 64]
    next(iter(root.glob("*/packs/*.pack"))).write_bytes(b"no pack")
    assert ObjectEmbeddingCache(root).get_many("model-a", ["a" * 64]) == {}


def test_prune_merges_small_packs_and_other_processes_find_their_texts(root: UPath) -> None:
    cache, other = ObjectEmbeddingCache(root), ObjectEmbeddingCache(root)
    kept = {f"{seed:064x}": vectors(seed) for seed in range(9)}
    for text_hash, entry in kept.items():
        cache.put_many("model-a", {text_hash: entry})
    assert other.get_many("model-a", list(kept)).keys() == kept.keys()
    assert cache.prune({"model-a": frozenset(list(kept)[1:])}) == 1
    assert len(list(root.glob("*/packs/*.pack"))) == 1
    for each in (cache, other, ObjectEmbeddingCache(root)):
        found = each.get_many("model-a", list(kept))
        assert found.keys() == kept.keys() - {f"{0:064x}"}
        assert np.array_equal(found[f"{5:064x}"].windows, kept[f"{5:064x}"].windows)


def test_many_texts_are_stored_and_read_with_few_requests(root: UPath) -> None:
    cache = ObjectEmbeddingCache(root)
    kept = {hash_text(str(seed)): vectors(seed) for seed in range(600)}
    cache.put_many("model-a", kept)
    assert len(list(root.glob("*/packs/*.pack"))) == 2
    some = list(kept)[100:520]
    found = ObjectEmbeddingCache(root).get_many("model-a", some)
    assert found.keys() == set(some)
    assert all(np.array_equal(found[name].dense, kept[name].dense) for name in some)


def test_the_objects_of_earlier_versions_are_still_read_and_pruned(root: UPath) -> None:
    folder = root / hashlib.sha256(b"model-a").hexdigest()[:16]
    former = vectors(1)
    for name in ("a" * 64, "b" * 64):
        buffer = io.BytesIO()
        np.save(buffer, np.vstack([former.dense[np.newaxis, :], former.windows]))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.npy").write_bytes(buffer.getvalue())
    cache = ObjectEmbeddingCache(root)
    found = cache.get_many("model-a", ["a" * 64, "c" * 64])
    assert list(found) == ["a" * 64]
    assert np.array_equal(found["a" * 64].windows, former.windows)
    assert cache.prune({"model-a": frozenset({"a" * 64})}) == 1
    assert list(cache.get_many("model-a", ["a" * 64, "b" * 64])) == ["a" * 64]


def test_a_ledger_on_an_object_store_stores_and_deletes_entries(root: UPath) -> None:
    ledger = FileLedger(root / "ledger")
    assert ledger.entries() == {}
    doc_id = DocId("module-1/intro.md")
    entry = LedgerEntry(doc_id, "s", 1, 2, "p", "c", "d", 3, "r", "2026-01-01T00:00:00+00:00")
    entry = ledger.record(entry)
    assert FileLedger(root / "ledger").entries() == {doc_id: entry}
    ledger.forget(doc_id, 1)
    ledger.forget(doc_id, 0)
    assert ledger.entries() == {}


def test_artifacts_on_an_object_store_are_written_read_and_removed(root: UPath) -> None:
    store = UPathArtifactStore(root)
    doc_id = DocId("module-1/intro.md")
    assert store.read(Stage.CHUNKS, doc_id) is None
    store.write(Stage.CHUNKS, doc_id, b"one")
    store.write(Stage.CHUNKS, doc_id, b"two")
    assert store.read(Stage.CHUNKS, doc_id) == b"two"
    store.remove(doc_id)
    store.remove(doc_id)
    assert store.read(Stage.CHUNKS, doc_id) is None
