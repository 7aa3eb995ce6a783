"""The contract of every CollectionCatalog: builds, switching, rollback, embedding spaces."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.stores.builds import read_space, write_space
from rag_pipeline.core.errors import (
    CollectionMissingError,
    EarlierCollectionMissingError,
    SpaceMismatchError,
)
from rag_pipeline.core.ids import PointId
from rag_pipeline_tests.congruence.points import SPACE, build, read_ids

if TYPE_CHECKING:
    from rag_pipeline.core.protocols import CollectionCatalog


def test_there_is_no_current_build_before_the_first_one(catalog: CollectionCatalog) -> None:
    assert catalog.current_id() is None
    with pytest.raises(CollectionMissingError, match="ingest"):
        catalog.open_current(SPACE)
    with pytest.raises(EarlierCollectionMissingError, match="--rebuild"):
        catalog.roll_back()


def test_a_new_build_is_not_current_before_the_switch(catalog: CollectionCatalog) -> None:
    store = catalog.create(SPACE)
    assert catalog.current_id() is None
    store.close()
    catalog.switch_to(store.collection_id)
    assert catalog.current_id() == store.collection_id


def test_the_space_of_a_build_is_read_without_opening_it(catalog: CollectionCatalog) -> None:
    collection_id = build(catalog, 7)
    store = catalog.open_current()
    assert catalog.read_space(collection_id) == SPACE
    store.close()


def test_a_reopened_build_has_the_same_space_id_and_points(catalog: CollectionCatalog) -> None:
    collection_id = build(catalog, 2**63 + 9)
    for space in (SPACE, None):
        store = catalog.open_current(space)
        assert store.space == SPACE
        assert store.collection_id == collection_id
        assert [point.point_id for point in store.scroll()] == [2**63 + 9]
        store.close()


@pytest.mark.parametrize(
    "space",
    [
        replace(SPACE, format_version=2),
        replace(SPACE, model=replace(SPACE.model, provider="openai")),
        replace(SPACE, model=replace(SPACE.model, model="another")),
        replace(SPACE, model=replace(SPACE.model, dim=16)),
        replace(SPACE, model=replace(SPACE.model, max_input_tokens=99)),
        replace(SPACE, model=replace(SPACE.model, window_words=None)),
    ],
    ids=["format", "provider", "model", "dim", "limit", "windows"],
)
def test_a_build_with_another_embedding_space_is_refused(
    catalog: CollectionCatalog, space: object
) -> None:
    build(catalog, 1)
    with pytest.raises(SpaceMismatchError, match="--rebuild"):
        catalog.open_current(space)  # type: ignore[arg-type]  # a space, by parametrize
    assert read_ids(catalog) == [1]


def build_as_another_release(
    catalog: CollectionCatalog, monkeypatch: pytest.MonkeyPatch, **differing: object
) -> None:
    """Build a collection as a release without window_words would, with other fields instead."""
    fields = json.loads(write_space(SPACE)) | differing
    del fields["window_words"]
    text = json.dumps(fields)
    for name in ("edge_catalog", "qdrant_catalog"):
        monkeypatch.setattr(f"rag_pipeline.adapters.stores.{name}.write_space", lambda _: text)
    store = catalog.create(read_space(text))
    store.close()
    catalog.switch_to(store.collection_id)


@pytest.mark.parametrize("window_words", [SPACE.model.window_words, None])
def test_a_build_of_a_release_with_other_fields_has_another_embedding_space(
    catalog: CollectionCatalog, monkeypatch: pytest.MonkeyPatch, window_words: int | None
) -> None:
    build_as_another_release(catalog, monkeypatch, window_tokens=64)
    wanted = replace(SPACE, model=replace(SPACE.model, window_words=window_words))
    with pytest.raises(SpaceMismatchError, match="--rebuild") as caught:
        catalog.open_current(wanted)
    assert "test/seeded window_tokens=64/8/100/0 (format 1)" in str(caught.value)
    assert str(wanted) in str(caught.value)
    store = catalog.open_current()
    assert store.space != wanted
    store.close()


def test_an_unknown_field_that_is_null_makes_no_difference(
    catalog: CollectionCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_as_another_release(catalog, monkeypatch, window_tokens=None)
    wanted = replace(SPACE, model=replace(SPACE.model, window_words=None))
    store = catalog.open_current(wanted)
    assert store.space == wanted
    store.close()


def test_each_build_has_its_own_id(catalog: CollectionCatalog) -> None:
    first, second = build(catalog, 1), build(catalog, 2)
    assert first != second
    assert catalog.current_id() == second
    assert read_ids(catalog) == [2]


def test_a_rollback_swaps_the_current_and_the_previous_build(catalog: CollectionCatalog) -> None:
    first, second = build(catalog, 1), build(catalog, 2)
    assert catalog.roll_back() == first
    assert catalog.current_id() == first
    assert read_ids(catalog) == [1]
    assert catalog.roll_back() == second
    assert read_ids(catalog) == [2]


def test_only_one_previous_build_is_kept(catalog: CollectionCatalog) -> None:
    build(catalog, 1)
    second, third = build(catalog, 2), build(catalog, 3)
    assert catalog.roll_back() == second
    assert catalog.roll_back() == third


def test_switching_to_the_current_build_keeps_the_previous_build(
    catalog: CollectionCatalog,
) -> None:
    first, second = build(catalog, 1), build(catalog, 2)
    catalog.switch_to(second)
    assert catalog.roll_back() == first


def test_switching_to_a_missing_build_changes_nothing(catalog: CollectionCatalog) -> None:
    first = build(catalog, 1)
    with pytest.raises(CollectionMissingError):
        catalog.switch_to("book-20260101T000000-abcdef")
    assert catalog.current_id() == first
    assert read_ids(catalog) == [1]


def test_an_open_store_still_reads_its_own_build_after_a_switch(catalog: CollectionCatalog) -> None:
    build(catalog, 1)
    store = catalog.open_current(SPACE)
    build(catalog, 2)
    assert [point.point_id for point in store.fetch([PointId(1), PointId(2)])] == [1]
    store.close()


def test_a_build_that_is_not_current_can_be_opened_by_its_id(catalog: CollectionCatalog) -> None:
    first, second = build(catalog, 1), build(catalog, 2)
    store = catalog.open(first, SPACE)
    assert [point.point_id for point in store.scroll()] == [1]
    store.close()
    assert catalog.current_id() == second
    with pytest.raises(SpaceMismatchError):
        catalog.open(first, replace(SPACE, format_version=2))
    with pytest.raises(CollectionMissingError):
        catalog.open("book-20260101T000000-abcdef")


def test_discard_deletes_a_build_but_never_the_current_one(catalog: CollectionCatalog) -> None:
    first = build(catalog, 1)
    abandoned = catalog.create(SPACE)
    abandoned.close()
    catalog.discard(abandoned.collection_id)
    catalog.discard(abandoned.collection_id)
    with pytest.raises(CollectionMissingError):
        catalog.switch_to(abandoned.collection_id)
    for harmless in (first, "", ".", "..", "someone-else"):
        catalog.discard(harmless)
    assert catalog.current_id() == first
    assert read_ids(catalog) == [1]


def test_after_discarding_the_previous_build_a_rollback_is_refused(
    catalog: CollectionCatalog,
) -> None:
    first, second = build(catalog, 1), build(catalog, 2)
    catalog.discard(first)
    with pytest.raises(EarlierCollectionMissingError, match="--rebuild"):
        catalog.roll_back()
    assert catalog.current_id() == second


def test_a_sweep_keeps_the_current_and_the_previous_build(
    catalog: CollectionCatalog,
) -> None:
    first, second = build(catalog, 1), build(catalog, 2)
    catalog.sweep()
    assert catalog.current_id() == second
    assert read_ids(catalog) == [2]
    assert catalog.roll_back() == first
    catalog.sweep()
    assert read_ids(catalog) == [1]
