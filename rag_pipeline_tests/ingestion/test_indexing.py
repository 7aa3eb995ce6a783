"""Tests of the index plan, which compares wanted points with existing points."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.core.ids import PointId, to_point_id
from rag_pipeline.ingestion.run import build_payloads, compute_data_version, plan_index
from rag_pipeline_tests.ingestion.records import TIME, make_chunk, make_document

payloads = st.dictionaries(
    st.integers(0, 5).map(PointId),
    st.fixed_dictionaries(
        {
            "embedding_hash": st.sampled_from(["x", "y"]),
            "tags": st.sampled_from([["a"], ["b"]]),
            "ingested_at": st.sampled_from(["then", "now"]),
        }
    ),
)


@given(wanted=payloads, existing=payloads, rewrite=st.booleans())
def test_a_plan_makes_the_store_contain_exactly_the_wanted_points(
    wanted: dict, existing: dict, *, rewrite: bool
) -> None:
    plan = plan_index(wanted, existing, rewrite=rewrite)
    store = {key: value for key, value in existing.items() if key not in plan.deletes}
    store |= plan.payload_updates | plan.upserts

    def contents(points: dict) -> dict:
        return {key: (value["embedding_hash"], value["tags"]) for key, value in points.items()}

    assert contents(store) == contents(wanted)
    assert plan.unchanged + plan.updated + plan.created == len(wanted)
    assert set(plan.deletes) == existing.keys() - wanted.keys()
    assert list(plan.deletes) == sorted(plan.deletes)
    assert not plan.upserts.keys() & plan.payload_updates.keys()
    assert set(plan.upserts) == (
        set(wanted)
        if rewrite
        else {
            key
            for key, value in wanted.items()
            if key not in existing or existing[key]["embedding_hash"] != value["embedding_hash"]
        }
    )
    again = plan_index(wanted, store)
    assert (again.upserts, again.payload_updates, again.deletes) == ({}, {}, ())


def test_a_point_that_differs_only_in_its_ingestion_time_is_unchanged() -> None:
    wanted = {PointId(1): {"embedding_hash": "x", "ingested_at": "now"}}
    existing = {PointId(1): {"embedding_hash": "x", "ingested_at": "then"}}
    assert plan_index(wanted, existing).unchanged == 1


def test_a_payload_with_a_missing_or_extra_field_is_updated() -> None:
    wanted = {PointId(1): {"embedding_hash": "x", "a": 1}}
    for stored in ({"embedding_hash": "x"}, {"embedding_hash": "x", "a": 1, "b": 2}):
        assert plan_index(wanted, {PointId(1): stored}).payload_updates == wanted


def test_a_point_without_embedding_hash_is_written_completely() -> None:
    wanted = {PointId(1): {"embedding_hash": "x"}}
    plan = plan_index(wanted, {PointId(1): {}})
    assert (plan.upserts, plan.created, plan.updated) == (wanted, 0, 1)


def test_content_that_was_indexed_before_keeps_its_ingestion_time() -> None:
    chunks = [make_chunk(0, "Old text."), make_chunk(1, "New text.")]
    built = build_payloads(make_document(), chunks, {chunks[0].content_hash: TIME}, "now")
    assert [payload["ingested_at"] for payload in built.values()] == [TIME, "now"]
    assert list(built) == [to_point_id(chunk.chunk_id) for chunk in chunks]


def test_the_data_version_depends_on_contents_but_not_on_times_or_order() -> None:
    document, chunks = make_document(), [make_chunk(0), make_chunk(1, "Other.")]
    version = compute_data_version(build_payloads(document, chunks, {}, "then"))
    assert version == compute_data_version(build_payloads(document, chunks[::-1], {}, "now"))
    for other in (
        build_payloads(document, chunks[:1], {}, "then"),
        build_payloads(replace(document, description="Else"), chunks, {}, "then"),
        build_payloads(document, [chunks[0], replace(chunks[1], tags=())], {}, "then"),
    ):
        assert compute_data_version(other) != version
