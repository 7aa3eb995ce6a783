"""Tests of what a catalog on a Qdrant server deletes, and what it keeps for other machines."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from qdrant_client import models

from rag_pipeline.adapters.stores.builds import name_cell
from rag_pipeline.adapters.stores.qdrant_catalog import QdrantCatalog
from rag_pipeline_tests.congruence.points import DIM, SPACE, make_point
from rag_pipeline_tests.memory_client import connect_memory

if TYPE_CHECKING:
    from rag_pipeline.adapters.stores.qdrant_connection import QdrantConnection


def make(connection: QdrantConnection, name: str, days: int) -> str:
    """Create a build of this age in days, and return its name."""
    name += (datetime.now(UTC) - timedelta(days=days)).strftime("-%Y%m%dT%H%M%S-abcdef")
    vectors = models.VectorParams(size=DIM, distance=models.Distance.COSINE)
    connection.call(lambda client: client.create_collection(name, vectors))
    return name


def read_names(connection: QdrantConnection) -> set[str]:
    answer = connection.call(lambda client: client.get_collections())
    return {collection.name for collection in answer.collections}


def test_a_sweep_deletes_unused_builds_that_are_over_a_week_old() -> None:
    connection = connect_memory()
    forgotten: list[str] = []
    catalog = QdrantCatalog(connection, "book", forgotten.append)
    store = catalog.create(SPACE)
    store.upsert([make_point(1)])
    catalog.switch_to(store.collection_id)

    abandoned, recent = make(connection, "book", 8), make(connection, "book", 6)
    others = make(connection, "another", 99)
    connection.call(lambda client: client.create_collection("notes", {}))
    catalog.sweep()
    assert read_names(connection) == {store.collection_id, recent, others, "notes"}
    assert forgotten == [abandoned]
    next_build = catalog.create(SPACE)
    catalog.switch_to(next_build.collection_id)
    assert forgotten == [abandoned, recent]


def test_a_sweep_cell_over_a_week_old_is_found_and_dropped() -> None:
    connection = connect_memory()
    old, young = name_cell("book", "0123abcd"), name_cell("book", "89abcdef")
    first, second = make(connection, old, 8), make(connection, old, 9)
    left = {make(connection, young, 8), make(connection, young, 1), make(connection, "book", 8)}
    assert QdrantCatalog(connection, "book").find_cells() == [old]
    assert QdrantCatalog(connection, old).find_cells() == []
    forgotten: list[str] = []
    QdrantCatalog(connection, old, forgotten.append).drop()
    assert set(forgotten) == {first, second}
    assert read_names(connection) == left
