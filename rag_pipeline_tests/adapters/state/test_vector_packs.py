"""Tests of packs of vectors and of their index."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.adapters.state import vector_packs
from rag_pipeline.adapters.state.vector_packs import (
    PackIndex,
    dump_pack,
    group_places,
    load_head,
    load_pack,
    load_rows,
)
from rag_pipeline.core.ids import hash_text
from rag_pipeline.core.vectors import STORED_DTYPE, ChunkVectors


def make_vectors(seed: int, windows: int = 2) -> ChunkVectors:
    """Build random vectors of dimension 4 with a number of windows."""
    rows = (
        np.random.default_rng(seed)
        .normal(size=(windows + 1, 4))
        .astype(STORED_DTYPE)
        .astype(np.float32)
    )
    return ChunkVectors(rows[0], rows[1:])


PACK = dump_pack({hash_text(name): make_vectors(ord(name), 3) for name in "abc"})


@given(counts=st.lists(st.integers(1, 5), min_size=1, max_size=5))
def test_loaded_packs_equal_the_dumped_vectors(counts: list[int]) -> None:
    kept = {hash_text(str(seed)): make_vectors(seed, count) for seed, count in enumerate(counts)}
    loaded = load_pack(dump_pack(kept))
    assert list(loaded) == list(kept)
    for name, entry in kept.items():
        assert loaded[name].dense.tolist() == entry.dense.tolist()
        assert loaded[name].windows.tolist() == entry.windows.tolist()


@given(position=st.integers(0, len(PACK) - 1), byte=st.integers(0, 255), cut=st.booleans())
def test_loading_a_damaged_pack_never_raises(position: int, byte: int, *, cut: bool) -> None:
    tail = b"" if cut else bytes([byte]) + PACK[position + 1 :]
    for found in load_pack(PACK[:position] + tail).values():
        assert found.windows.ndim == 2


@given(sizes=st.lists(st.integers(1, 4), max_size=6), most=st.integers(1, 9))
def test_an_index_finds_the_rows_of_each_text(sizes: list[int], most: int) -> None:
    index, packs, number = PackIndex(), dict[str, bytes](), 0
    with patch.object(vector_packs, "_MOST_RECENT", most):
        for pack, size in enumerate(sizes):
            names = [hash_text(str(number + each)) for each in range(size)]
            number += size
            packs[str(pack)] = dump_pack({name: make_vectors(pack) for name in names})
            head = load_head(packs[str(pack)])
            assert head is not None
            index.add(str(pack), head)
    wanted = [hash_text(str(each)) for each in range(number + 2)]
    found = index.find(wanted)
    assert list(found) == wanted[:number]
    for group in group_places(found, 0):
        for name, place in group:
            rows = load_rows(packs[place.pack][place.start : place.end], place.dim)
            assert rows is not None
            assert rows.windows.tolist() == make_vectors(int(place.pack)).windows.tolist()
            assert load_pack(packs[place.pack])[name].dense.tolist() == rows.dense.tolist()
    for pack in packs:
        index.remove(pack)
    assert index.find(wanted) == {}
