"""The same catalog over every store there is on this machine."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.stores.edge_catalog import EdgeCatalog
from rag_pipeline.adapters.stores.qdrant_catalog import QdrantCatalog
from rag_pipeline.adapters.stores.qdrant_connection import connect_memory, connect_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rag_pipeline.core.protocols.stores import CollectionCatalog


SERVER_URL = os.environ.get("QDRANT_URL", "")

STORES = ["edge", "memory", *(["server"] if SERVER_URL else [])]


@pytest.fixture(params=STORES)
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CollectionCatalog]:
    """An empty catalog; everything made on a server is deleted behind the test."""
    if request.param == "edge":
        yield EdgeCatalog(tmp_path / "store", "book", 0.2)
    elif request.param == "memory":
        yield QdrantCatalog(connect_memory(), "book")
    else:
        yield from _serve_catalog()


def _serve_catalog() -> Iterator[CollectionCatalog]:
    key = os.environ.get("QDRANT_API_KEY", "")
    connection = connect_server(SERVER_URL, api_key=key, timeout_s=30)
    name = f"test-{secrets.token_hex(4)}"
    try:
        yield QdrantCatalog(connection, name)
    finally:
        collections = connection.call(lambda client: client.get_collections()).collections
        for collection in collections:
            if collection.name.startswith(name):
                connection.call(lambda client, it=collection.name: client.delete_collection(it))
