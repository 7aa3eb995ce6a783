"""What a Qdrant server's catalog deletes, and what it leaves to other machines."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from qdrant_client import models

from rag_pipeline.adapters.qdrant_catalog import QdrantCatalog
from rag_pipeline.adapters.qdrant_connection import connect_memory
from rag_pipeline_tests.congruence.points import DIM, SPACE, make_point


def test_a_sweep_deletes_builds_that_nobody_put_in_use_for_a_week() -> None:
    connection = connect_memory()
    forgotten: list[str] = []
    catalog = QdrantCatalog(connection, "book", forgotten.append)
    store = catalog.create(SPACE)
    store.upsert([make_point(1)])
    catalog.switch_to(store.collection_id)

    def make(name: str, days: int) -> str:
        name += (datetime.now(UTC) - timedelta(days=days)).strftime("-%Y%m%dT%H%M%S-abcdef")
        vectors = models.VectorParams(size=DIM, distance=models.Distance.COSINE)
        connection.call(lambda client: client.create_collection(name, vectors))
        return name

    abandoned, recent, others = make("book", 8), make("book", 6), make("another", 99)
    connection.call(lambda client: client.create_collection("notes", {}))
    catalog.sweep()
    answer = connection.call(lambda client: client.get_collections())
    left = {collection.name for collection in answer.collections}
    assert left == {store.collection_id, recent, others, "notes"}
    assert forgotten == [abandoned]
    next_build = catalog.create(SPACE)
    catalog.switch_to(next_build.collection_id)
    assert forgotten == [abandoned, recent]
