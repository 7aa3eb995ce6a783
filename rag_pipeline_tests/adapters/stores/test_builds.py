"""Tests of the lock that a catalog holds while it changes the set of its builds."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.stores.edge_catalog import EdgeCatalog
from rag_pipeline.adapters.stores.qdrant_catalog import QdrantCatalog
from rag_pipeline.core.errors import CollectionMissingError
from rag_pipeline_tests.congruence.points import SPACE, make_point
from rag_pipeline_tests.memory_client import connect_memory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rag_pipeline.core.protocols import CollectionCatalog


class CountedLock:
    """A lock that counts how often it was taken, and fails if it is taken while it is held."""

    def __init__(self) -> None:
        self.taken = 0
        self.is_held = False

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the lock."""
        assert not self.is_held
        self.taken, self.is_held = self.taken + 1, True
        yield
        self.is_held = False


@pytest.mark.parametrize("kind", ["edge", "memory"])
def test_each_method_that_changes_the_builds_holds_the_lock_once(kind: str, tmp_path: Path) -> None:
    lock = CountedLock()
    catalog: CollectionCatalog = (
        EdgeCatalog(tmp_path, "book", 1.0, lock=lock.hold)
        if kind == "edge"
        else QdrantCatalog(connect_memory(), "book", lock=lock.hold)
    )
    builds = []
    for _ in range(2):
        store = catalog.create(SPACE)
        store.upsert([make_point(1)])
        store.close()
        catalog.switch_to(store.collection_id)
        catalog.switch_to(store.collection_id)  # a repeated switch changes nothing
        builds.append(store.collection_id)
    assert lock.taken == 6
    assert catalog.roll_back() == builds[0]
    with catalog.hold():
        catalog.recover()
        catalog.sweep()
        catalog.discard("book-20260101T000000-abcdef")
    assert lock.taken == 8
    catalog.open_current().close()
    assert lock.taken == 8
    catalog.drop()
    with pytest.raises(CollectionMissingError):
        catalog.open_current()
    assert (lock.taken, lock.is_held) == (9, False)
