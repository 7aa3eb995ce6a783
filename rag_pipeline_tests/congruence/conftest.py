"""A catalog fixture for every kind of store. Tests on a server have the mark `qdrant`."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.stores.edge_catalog import EdgeCatalog
from rag_pipeline.adapters.stores.qdrant_catalog import QdrantCatalog
from rag_pipeline.adapters.stores.qdrant_connection import connect_server
from rag_pipeline_tests.memory_client import connect_memory
from rag_pipeline_tests.qdrant_engine import serve_qdrant

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rag_pipeline.adapters.stores.qdrant_connection import QdrantConnection
    from rag_pipeline.core.protocols import CollectionCatalog


@pytest.fixture(scope="session")
def server() -> QdrantConnection:
    """Return a connection to the Qdrant server at QDRANT_URL."""
    return connect_to_server()


def connect_to_server() -> QdrantConnection:
    """Return a connection to the Qdrant server at QDRANT_URL.

    A test that uses the server fails if QDRANT_URL is not set or the server does not answer.
    """
    url = os.environ.get("QDRANT_URL", "")
    if not url:
        pytest.fail("QDRANT_URL is not set. Example: http://127.0.0.1:6333")
    key = os.environ.get("QDRANT_API_KEY", "")
    connection = connect_server(url, api_key=key, timeout_s=30)
    connection.call(lambda client: client.get_collections())
    return connection


@pytest.fixture(
    params=["edge", "memory", "loopback", pytest.param("server", marks=pytest.mark.qdrant)]
)
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CollectionCatalog]:
    """Return an empty catalog. Collections on a server are deleted after the test.

    `memory` is the client's own engine, and `loopback` the embedded engine behind the REST
    interface of a server.
    """
    if request.param == "edge":
        yield EdgeCatalog(tmp_path / "store", "book", 0.2)
    elif request.param == "memory":
        yield QdrantCatalog(connect_memory(), "book")
    elif request.param == "loopback":
        with serve_qdrant(tmp_path) as (running, _):
            yield from _serve_catalog(connect_server(running.url, api_key="", timeout_s=30))
    else:
        yield from _serve_catalog(request.getfixturevalue("server"))


def _serve_catalog(connection: QdrantConnection) -> Iterator[CollectionCatalog]:
    name = f"test-{secrets.token_hex(4)}"
    try:
        yield QdrantCatalog(connection, name)
    finally:
        delete_collections(connection, name)


def delete_collections(connection: QdrantConnection, name: str) -> None:
    """Delete all collections of a server whose names begin with a text."""
    collections = connection.call(lambda client: client.get_collections()).collections
    for collection in collections:
        if collection.name.startswith(name):
            connection.call(lambda client, it=collection.name: client.delete_collection(it))
