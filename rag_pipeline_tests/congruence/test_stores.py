"""The contract of every PointStore: writing, reading, filters, scores and order."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from rag_pipeline.core.ids import PointId
from rag_pipeline.core.protocols import Channel, ChannelQuery, PointFilter, PointStore
from rag_pipeline.core.vectors import ChunkVectors, SparseVector
from rag_pipeline_tests.congruence.points import (
    ABOVE_SIGNED,
    DIM,
    HIGHEST_ID,
    SPACE,
    make_point,
    make_points,
    make_rows,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_pipeline.core.models import JsonValue, Payload
    from rag_pipeline.core.protocols import CollectionCatalog
    from rag_pipeline.core.vectors import Point

POINTS = make_points()


@pytest.fixture
def store(catalog: CollectionCatalog) -> Iterator[PointStore]:
    """Return an empty store, which is closed after the test."""
    built = catalog.create(SPACE)
    yield built
    built.close()


@pytest.fixture
def full(store: PointStore) -> PointStore:
    """Return a store that contains `POINTS`."""
    store.upsert(POINTS)
    return store


def ids_of(points: Sequence[object]) -> list[int]:
    return [point.point_id for point in points]  # type: ignore[attr-defined]  # every kind of point has an id


def score_by_hand(points: Sequence[Point], query: ChannelQuery) -> list[tuple[PointId, float]]:
    """Compute the expected hits of a query without a store.

    The score is the cosine, the mean of each row's best window, or the BM25 weights times
    Qdrant's inverse document frequency.
    """
    scored = []
    for point in points:
        if isinstance(query.vector, SparseVector):
            weights = dict(zip(point.sparse.indices, point.sparse.values, strict=True))
            common = [term for term in query.vector.indices if term in weights]
            score = 0.0
            for term in common:
                holders = sum(term in other.sparse.indices for other in points)
                idf = math.log((len(points) - holders + 0.5) / (holders + 0.5) + 1)
                asked = query.vector.values[query.vector.indices.index(term)]
                score += asked * weights[term] * idf
            if not common:
                continue
        elif query.channel is Channel.WINDOWS:
            score = float((point.vectors.windows @ query.vector.T).max(axis=0).mean())
        else:
            score = float(point.vectors.dense @ query.vector)
        scored.append((point.point_id, score))
    return sorted(scored, key=lambda hit: (-hit[1], hit[0]))[: query.limit]


def check_hits(found: list[tuple[PointId, float]], expected: list[tuple[PointId, float]]) -> None:
    assert [score for _, score in found] == pytest.approx([s for _, s in expected], abs=1e-3)
    # Engines may differ in the last bit, so nearly equal scores may be in another order.
    gaps = dict(expected)
    for (found_id, score), (expected_id, _) in zip(found, expected, strict=True):
        assert found_id == expected_id or gaps[found_id] == pytest.approx(score, abs=1e-3)


DENSE = ChannelQuery(Channel.DENSE, make_rows(900, 1)[0], 10)
WINDOWS = ChannelQuery(Channel.WINDOWS, make_rows(901, 3), 10)
BM25 = ChannelQuery(Channel.BM25, SparseVector((3, 12, 21), (1.0, 2.0, 0.5)), 10)


@pytest.mark.parametrize("query", [DENSE, WINDOWS, BM25], ids=["dense", "windows", "bm25"])
def test_scores_equal_those_computed_without_a_store(full: PointStore, query: ChannelQuery) -> None:
    check_hits(full.search_many([query])[0], score_by_hand(POINTS, query))


def test_several_searches_in_one_call_give_the_same_hits_as_single_searches(
    full: PointStore,
) -> None:
    queries = [DENSE, WINDOWS, BM25, DENSE]
    for query, together in zip(queries, full.search_many(queries), strict=True):
        check_hits(together, full.search_many([query])[0])
    assert full.search_many([]) == []


def test_fields_of_all_points_are_read_without_the_rest_of_the_payload(full: PointStore) -> None:
    read = dict(full.scroll_fields(["doc_path", "chunk_id"]))
    assert read == {
        point.point_id: {name: point.payload[name] for name in ("doc_path", "chunk_id")}
        for point in full.scroll()
    }


def test_fields_of_matching_points_are_read_by_ascending_id(full: PointStore) -> None:
    where = PointFilter.any_of(doc_path=(str(full.scroll()[0].payload["doc_path"]),))
    read = list(full.scroll_fields(["chunk_id"], where))
    assert read == [
        (point.point_id, {"chunk_id": point.payload["chunk_id"]}) for point in full.scroll(where)
    ]
    assert 0 < len(read) < full.count()


def test_an_empty_store_finds_nothing(store: PointStore) -> None:
    assert store.search_many([DENSE, WINDOWS, BM25]) == [[], [], []]
    assert store.scroll() == []
    assert store.count() == 0
    assert store.fetch([PointId(1)]) == []


def test_a_bm25_search_leaves_out_points_without_a_common_term(full: PointStore) -> None:
    unknown = SparseVector((999,), (1.0,))
    no_terms = SparseVector((), ())
    queries = [ChannelQuery(Channel.BM25, vector, 5) for vector in (unknown, no_terms)]
    assert full.search_many(queries) == [[], []]


def test_equal_scores_are_ordered_and_cut_by_ascending_id(store: PointStore) -> None:
    ids = [7, 2**63 + 5, 3, HIGHEST_ID, 11, *range(200, 300)]
    store.upsert([make_point(point_id, seed=1) for point_id in reversed(ids)])
    expected = sorted(ids)
    rows = make_rows(5, 2)
    for query in (
        ChannelQuery(Channel.DENSE, rows[0], 30),
        ChannelQuery(Channel.WINDOWS, rows, 30),
    ):
        assert [hit[0] for hit in store.search_many([query])[0]] == expected[:30]
    everything = ChannelQuery(Channel.BM25, SparseVector((1,), (1.0,)), 200)
    assert [hit[0] for hit in store.search_many([everything])[0]] == expected


def test_ids_above_the_signed_64_bit_range_are_read_unchanged(full: PointStore) -> None:
    found = full.fetch([HIGHEST_ID, ABOVE_SIGNED])
    assert ids_of(found) == [HIGHEST_ID, ABOVE_SIGNED]
    assert ids_of(full.scroll())[-2:] == [ABOVE_SIGNED, HIGHEST_ID]
    only = PointFilter(point_ids=(HIGHEST_ID,))
    assert [hit[0] for hit in full.search_many([ask(DENSE, only)])[0]] == [HIGHEST_ID]


def test_fetch_keeps_the_requested_order_and_leaves_out_missing_ids(
    full: PointStore,
) -> None:
    assert ids_of(full.fetch([PointId(i) for i in (9, 2, 12_345, 5)])) == [9, 2, 5]
    assert full.fetch([]) == []


def test_single_fields_and_dense_vectors_can_be_read_without_the_rest(full: PointStore) -> None:
    ids = [PointId(3), HIGHEST_ID, PointId(12_345)]
    by_id = {point.point_id: point for point in POINTS}
    wanted = ["module", "tags", "not_there"]
    assert full.fetch_fields(ids, wanted) == {
        point_id: {name: by_id[point_id].payload[name] for name in ("module", "tags")}
        for point_id in ids[:2]
    }
    assert full.fetch_fields(ids, ["not_there"]) == {PointId(3): {}, HIGHEST_ID: {}}
    dense = full.fetch_with_dense(ids)
    assert set(dense) == set(ids[:2])
    for point_id, (payload, vector) in dense.items():
        assert payload == by_id[point_id].payload
        assert vector is not None
        assert vector.dtype == np.float32
        np.testing.assert_allclose(vector, by_id[point_id].vectors.dense, atol=1e-3)
    assert full.fetch_fields([], wanted) == {}
    assert full.fetch_with_dense([]) == {}


def test_payloads_and_vectors_are_read_as_they_were_written(full: PointStore) -> None:
    by_id = {point.point_id: point for point in POINTS}
    for found in full.scroll(with_vectors=True):
        written = by_id[found.point_id]
        assert found.payload == written.payload
        assert found.vectors is not None
        np.testing.assert_allclose(found.vectors.dense, written.vectors.dense, atol=1e-3)
        np.testing.assert_allclose(found.vectors.windows, written.vectors.windows, atol=1e-3)
        assert found.vectors.windows.shape == written.vectors.windows.shape
        assert found.vectors.windows.dtype == np.float32
        assert found.sparse is not None
        assert found.sparse.indices == written.sparse.indices
        assert found.sparse.values == pytest.approx(written.sparse.values)
    assert (full.fetch([PointId(1)])[0].vectors, full.fetch([PointId(1)])[0].sparse) == (None, None)
    assert full.fetch([PointId(1)], with_vectors=True)[0].vectors is not None


def test_unusual_payload_values_are_read_as_they_were_written(store: PointStore) -> None:
    payload: Payload = {
        "text": 'a\x00b "quoted" \n\t ü 🤖 \\d',
        "nothing": None,
        "number": 1.5,
        "whole": 2**53,
        "flag": True,
        "list": [],
        "nested": {"a": ["b", None]},
    }
    point = make_point(1)
    point.payload.clear()
    point.payload.update(payload)
    store.upsert([point])
    assert store.fetch([PointId(1)])[0].payload == payload


def test_a_description_counts_all_points(full: PointStore) -> None:
    assert full.describe().point_count == len(POINTS)


def test_scroll_and_count_include_every_page_of_results(store: PointStore) -> None:
    store.upsert([make_point(number) for number in range(2500, 0, -1)])
    assert store.count() == 2500
    assert ids_of(store.scroll()) == list(range(1, 2501))
    assert sorted(point_id for point_id, _ in store.scroll_fields(())) == list(range(1, 2501))


def test_upserting_again_replaces_the_whole_point(full: PointStore) -> None:
    changed = make_point(1, seed=77, module="module-7")
    full.upsert([changed])
    found = full.fetch([PointId(1)], with_vectors=True)[0]
    assert found.payload == changed.payload
    assert "chapter" not in found.payload
    assert found.vectors is not None
    np.testing.assert_allclose(found.vectors.windows, changed.vectors.windows, atol=1e-3)
    assert full.count() == len(POINTS)
    hits = full.search_many([ChannelQuery(Channel.DENSE, changed.vectors.dense, 1)])[0]
    assert hits[0][0] == 1
    assert hits[0][1] == pytest.approx(1.0, abs=1e-4)


def test_set_payloads_replaces_payloads_and_keeps_vectors(full: PointStore) -> None:
    before = full.fetch([PointId(1)], with_vectors=True)[0].vectors
    full.set_payloads({PointId(1): {"module": "new"}, PointId(2): {"tags": ["x"]}})
    one, two = full.fetch([PointId(1), PointId(2)], with_vectors=True)
    assert one.payload == {"module": "new"}
    assert two.payload == {"tags": ["x"]}
    assert isinstance(before, ChunkVectors)
    assert isinstance(one.vectors, ChunkVectors)
    np.testing.assert_array_equal(one.vectors.dense, before.dense)
    np.testing.assert_array_equal(one.vectors.windows, before.windows)
    assert full.count(PointFilter.any_of(module=("new",))) == 1
    assert full.count(PointFilter.any_of(tags=("x",))) == 1


def test_a_nested_payload_is_read_as_it_was_written(full: PointStore) -> None:
    blocks: JsonValue = [
        {"kind": "list", "start": 0, "end": 9},
        {"kind": "code", "start": 10, "end": 2**31},
    ]
    full.set_payloads({PointId(7): {"module": "nested", "blocks": blocks, "anchor": None}})
    (one,) = full.scroll(PointFilter.any_of(module=["nested"]))
    assert one.payload == {"module": "nested", "blocks": blocks, "anchor": None}


def test_deleted_points_are_not_found_and_can_be_deleted_again(full: PointStore) -> None:
    gone = [PointId(1), PointId(2), HIGHEST_ID, PointId(55_555)]
    full.delete(gone)
    full.delete(gone)
    full.delete([])
    assert full.count() == len(POINTS) - 3
    assert full.fetch(gone) == []
    everything = ChannelQuery(Channel.DENSE, DENSE.vector, 100)
    assert {hit[0] for hit in full.search_many([everything])[0]}.isdisjoint(gone)
    full.upsert([])
    full.set_payloads({})


def ask(query: ChannelQuery, where: PointFilter) -> ChannelQuery:
    return ChannelQuery(query.channel, query.vector, 100, where)


def matches(point: Point, where: PointFilter) -> bool:
    """Return True if a point has a value of each field of a filter, and one of its ids."""
    for field, values in where.fields:
        stored = point.payload.get(field)
        if set(values).isdisjoint(stored if isinstance(stored, list) else [stored]):
            return False
    return where.point_ids is None or point.point_id in where.point_ids


FILTERS = [
    PointFilter(),
    PointFilter.any_of(module=("module-1",)),
    PointFilter.any_of(module=("module-1", "module-9")),
    PointFilter.any_of(chapter=("chapter-2",)),
    PointFilter.any_of(content_type=("code", "lab")),
    PointFilter.any_of(tags=("tag-0", "tag-3")),
    PointFilter.any_of(doc_path=("a b/ü.md",)),
    PointFilter.any_of(module=("module-0", "module-1"), chapter=("chapter-1",), tags=("tag-1",)),
    PointFilter.any_of(module=("Module-1",)),
    PointFilter(point_ids=()),
    PointFilter(point_ids=(PointId(3), PointId(4), HIGHEST_ID, PointId(99_999))),
    PointFilter((("module", ("module-0",)),), point_ids=(PointId(3), PointId(4))),
]


@pytest.mark.parametrize("where", FILTERS)
def test_a_filter_applies_to_count_scroll_and_every_search(
    full: PointStore, where: PointFilter
) -> None:
    matching = [point for point in POINTS if matches(point, where)]
    ids = {point.point_id for point in matching}
    assert full.count(where) == len(ids)
    assert ids_of(full.scroll(where)) == sorted(ids)
    dense, windows, bm25 = full.search_many([ask(q, where) for q in (DENSE, WINDOWS, BM25)])
    check_hits(dense, score_by_hand(matching, ask(DENSE, where)))
    check_hits(windows, score_by_hand(matching, ask(WINDOWS, where)))
    # Inverse document frequencies are those of the whole collection, also with a filter.
    of_all = {hit[0]: hit[1] for hit in score_by_hand(POINTS, ask(BM25, PointFilter()))}
    assert dict(bm25) == pytest.approx({i: of_all[i] for i in ids if i in of_all}, abs=1e-4)


def test_points_can_be_found_by_the_fields_that_only_some_have_or_by_their_absence(
    full: PointStore,
) -> None:
    latest = PointFilter(without=("is_latest",))
    assert full.count(latest) == len(POINTS)
    assert full.count(PointFilter.any_of(version=("2.0",))) == 0
    one, other = POINTS[0], POINTS[1]
    old = replace(one, payload={**one.payload, "version": "2.0", "is_latest": False})
    full.upsert([old])
    new: Payload = {**other.payload, "version": "3.0"}
    full.set_payloads({other.point_id: new})
    assert {"version", "is_latest"} <= full.describe().late_fields
    assert one.point_id not in ids_of(full.scroll(latest))
    assert full.count(latest) == len(POINTS) - 1
    dense = full.search_many([ask(DENSE, latest)])[0]
    assert one.point_id not in dict(dense)
    both = PointFilter.any_of(version=("2.0", "3.0"))
    assert ids_of(full.scroll(both)) == sorted([one.point_id, other.point_id])
    latest_of_both = PointFilter(both.fields, without=("is_latest",))
    assert ids_of(full.scroll(latest_of_both)) == [other.point_id]


def test_bm25_counts_how_rare_a_term_is_within_the_corpus_of_the_query(full: PointStore) -> None:
    where = PointFilter.any_of(module=("module-1",))
    matching = [point for point in POINTS if point.payload["module"] == "module-1"]
    query = ChannelQuery(Channel.BM25, BM25.vector, 100, where, corpus=where)
    check_hits(full.search_many([query])[0], score_by_hand(matching, query))


def test_points_too_large_for_one_request_are_written(store: PointStore) -> None:
    rows = np.tile(make_rows(3, 1), (30_000, 1))
    wide = make_point(1)
    big = [
        type(wide)(PointId(i), ChunkVectors(rows[0], rows), wide.sparse, wide.payload)
        for i in range(1, 4)
    ]
    store.upsert(big)
    assert store.count() == 3


def test_concurrent_readers_get_the_same_hits(full: PointStore) -> None:
    queries = [DENSE, WINDOWS, BM25]
    expected = full.search_many(queries)
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: full.search_many(queries), range(40)))
    for answer in answers:
        for found, wanted in zip(answer, expected, strict=True):
            check_hits(found, wanted)


def test_a_store_can_be_closed_twice(catalog: CollectionCatalog) -> None:
    store = catalog.create(SPACE)
    store.close()
    store.close()
    assert store.space.model.dim == DIM
